-- conversation, entry, lease, message id, next run id, memory ttl, run ttl, attempts before this
-- failure, most attempts, reason, wait ms, claim ms → {'later'} | head
local conversation, entry, lease, run_id = ARGV[1], ARGV[2], ARGV[3], ARGV[5]
local memory_ttl, run_ttl = tonumber(ARGV[6]), tonumber(ARGV[7])
local key = K.run .. conversation
if not is_mine(conversation, lease, ARGV[4]) then
  return after_end(conversation, entry, lease, run_id, memory_ttl, run_ttl)
end
local attempts, wait_ms = tonumber(ARGV[8]) + 1, tonumber(ARGV[11])
if attempts < tonumber(ARGV[9]) then
  redis.call('HSET', key, 'attempts', attempts, 'not_before', now_ms() + wait_ms)
  redis.call('HDEL', key, 'lease')
  park(entry, wait_ms, tonumber(ARGV[12]))
  return { 'later' }
end

local id, session = unpack(redis.call('HMGET', key, 'run_id', 'session'))
local channel, user = owner(session)
-- Forgotten meanwhile: its words must not be kept as a dead letter either.
if is_fresh(conversation) then
  redis.call('HSET', K.dead, id, cjson.encode({
    id = id, at = now_ms(), reason = ARGV[10], attempts = attempts, conversation = conversation,
    item = redis.call('LINDEX', K.inbox .. conversation, 0),
  }))
  -- Old letters are dropped once a day (core/app.py): the place outlives them.
  note_place(user, channel .. '|dead|' .. id, 2 * run_ttl)
end
return next_head(conversation, entry, lease, run_id, memory_ttl, run_ttl)
