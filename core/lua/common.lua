-- Shared by every script. The lines above this one are made by core/keys.py: T, K, GROUP, LATER.

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Names a place that holds this user's words, until it expires, so that forget finds it.
local function note_place(user, place, ttl_s)
  local key = K.mine .. user
  local now = tonumber(redis.call('TIME')[1])
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  redis.call('ZADD', key, now + ttl_s, place)
  if redis.call('TTL', key) < ttl_s then redis.call('EXPIRE', key, ttl_s) end
end

local function epoch_of(session)
  return tonumber(redis.call('GET', K.epoch .. session) or 0)
end

-- The facts as a flat list. Their lifetime slides: renewed once a hundredth of it has passed.
local function facts_of(session, channel, user, ttl_s)
  local key = K.mem .. session
  local left = redis.call('TTL', key)
  if left == -2 then return {} end
  if left < ttl_s * 0.99 then
    redis.call('EXPIRE', key, ttl_s)
    note_place(user, channel .. '|mem|' .. session, ttl_s)
  end
  return redis.call('HGETALL', key)
end
