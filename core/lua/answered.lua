-- conversation, lease, message id, run, turn or '', elapsed ms, history ttl, run ttl, most turns,
-- oldest time of a turn, is a gap 1 | 0, alias, … → 'saved' | 'forgotten' | 'lost'
local conversation, key = ARGV[1], K.run .. ARGV[1]
local history_ttl, run_ttl = tonumber(ARGV[7]), tonumber(ARGV[8])
if not is_mine(conversation, ARGV[2], ARGV[3]) then return 'lost' end
local run = redis.call('HMGET', key, 'phase', 'run_id', 'session', 'final')
if run[1] == 'answered' then return run[4] and 'forgotten' or 'saved' end

add_aliases(conversation, 12, history_ttl)
if not is_fresh(conversation) then
  redis.call('HSET', key, 'phase', 'answered', 'elapsed_ms', ARGV[6], 'final', ARGV[4])
  redis.call('HDEL', key, 'checkpoint')
  return 'forgotten'
end

local channel, user = owner(run[3])
local rec, hist, thread = K.rec .. run[2], K.hist .. conversation, K.thread .. conversation
redis.call('HSET', rec, 'session', run[3], 'conversation', conversation, 'run', ARGV[4])
redis.call('EXPIRE', rec, run_ttl)
note_place(user, channel .. '|rec|' .. run[2], run_ttl)
if ARGV[5] ~= '' then
  redis.call('HSET', rec, 'question', cjson.decode(ARGV[5]).text)
  if ARGV[11] == '1' then note_gap(run[2], run_ttl) end
  redis.call('RPUSH', hist, ARGV[5])
  redis.call('LTRIM', hist, -tonumber(ARGV[9]), -1)
  local oldest = redis.call('LINDEX', hist, 0)
  while oldest and redis.call('LLEN', hist) > 1
    and cjson.decode(oldest).at < tonumber(ARGV[10]) do
    redis.call('LPOP', hist)
    oldest = redis.call('LINDEX', hist, 0)
  end
  redis.call('EXPIRE', hist, history_ttl)
  -- Others may keep it alive: it goes with their first turn after its time, or with the last before.
  note_place(user, channel .. '|hist|' .. conversation, 2 * history_ttl)
end
redis.call('HSET', key, 'phase', 'answered', 'elapsed_ms', ARGV[6])
redis.call('HDEL', key, 'checkpoint')
redis.call('EXPIRE', thread, history_ttl)
return 'saved'
