-- user (escaped), user, channel or '' for all, fact key or '' for everything, the same escaped,
-- preview 1 | 0, token, epoch ttl, history ttl
-- → {facts, turns, records, checkpoints, undos, dead letters, complete 1 | 0}
--
-- Only commands that free memory delete, so that a full server can still forget; raising an epoch
-- needs memory, and when there is none the rest is done and said to be incomplete.
local user, user_id, only, fact, fact_place = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local preview, once = ARGV[6] == '1', K.once .. ARGV[7]
local mine = K.mine .. user
local count = { mem = 0, hist = 0, rec = 0, run = 0, undo = 0, dead = 0 }
local complete = 1

local known = not preview and redis.call('GET', once)
if known then return cjson.decode(known) end

local function write(...)
  if not preview then return redis.call(...) end
end

local function try(...)
  if preview then return end
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then complete = 0 end
end

-- What a run under way could be resumed from. One that was answered must be answered anew.
local function drop_checkpoint(conversation)
  local key = K.run .. conversation
  if redis.call('HEXISTS', key, 'checkpoint') == 1 or redis.call('HEXISTS', key, 'final') == 1 then
    count.run = count.run + 1
    write('HDEL', key, 'checkpoint', 'final')
  end
  if redis.call('HGET', key, 'phase') == 'answered' then try('HSET', key, 'phase', 'running') end
end

local drop = {}

function drop.mem(rest)
  local key = K.mem .. rest
  if fact == '' then
    count.mem = count.mem + redis.call('HLEN', key)
    write('DEL', key)
    return true
  end
  count.mem = count.mem + redis.call('HEXISTS', key, fact)
  write('HDEL', key, fact)
end

function drop.undo(rest)
  if fact ~= '' and rest:sub(-#fact_place - 1) ~= '/' .. fact_place then return false end
  count.undo = count.undo + redis.call('EXISTS', K.undo .. rest)
  write('DEL', K.undo .. rest)
  return true
end

function drop.run(conversation)
  if redis.call('HGET', K.run .. conversation, 'user') == user_id then
    drop_checkpoint(conversation)
  end
  -- It stays named: until it is done, its worker may write another checkpoint.
  return false
end

function drop.hist(conversation)
  if fact ~= '' then return false end
  local key, turns = K.hist .. conversation, 0
  for _, item in ipairs(redis.call('LRANGE', key, 0, -1)) do
    if cjson.decode(item).author_id == user_id then
      turns = turns + 1
      write('LREM', key, 1, item)
    end
  end
  count.hist = count.hist + turns
  -- Another user's run here has read these turns: it may be delivered, but nothing of it is kept.
  local asker = redis.call('HGET', K.run .. conversation, 'user')
  if turns > 0 and asker and asker ~= user_id then
    drop_checkpoint(conversation)
    try('HINCRBY', K.thread .. conversation, 'epoch', 1)
    if redis.call('TTL', K.thread .. conversation) == -1 then
      write('EXPIRE', K.thread .. conversation, ARGV[9])
    end
  end
  return true
end

function drop.rec(rest)
  if fact ~= '' then return false end
  count.rec = count.rec + redis.call('EXISTS', K.rec .. rest)
  write('DEL', K.rec .. rest)
  return true
end

function drop.dead(rest)
  if fact ~= '' then return false end
  count.dead = count.dead + redis.call('HEXISTS', K.dead, rest)
  write('HDEL', K.dead, rest)
  return true
end

local channels = {}
if only ~= '' then channels[only] = true end
for _, place in ipairs(redis.call('ZRANGE', mine, 0, -1)) do
  local channel, kind, rest = place:match('^([^|]*)|([^|]*)|(.*)$')
  if only == '' or channel == only then
    channels[channel] = true
    if drop[kind](rest) then write('ZREM', mine, place) end
  end
end
for channel in pairs(channels) do
  local key = K.epoch .. channel .. '/' .. user
  try('INCR', key)
  write('EXPIRE', key, ARGV[8])
end

local report = { count.mem, count.hist, count.rec, count.run, count.undo, count.dead, complete }
if not preview then try('SET', once, cjson.encode(report), 'EX', 60) end
report[7] = complete
return report
