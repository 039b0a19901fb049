-- conversation, message id, the same escaped, whole thread 1 | 0
-- → 'withdrawn' | 'cancelled' | 'nothing'
local whole = ARGV[4] == '1'
local conversation = redis.call('GET', K.seen .. ARGV[3]) or real(ARGV[1])
local inbox, key = K.inbox .. conversation, K.run .. conversation
local outcome = 'nothing'
local run = redis.call('HMGET', key, 'message_id', 'phase')
for place, item in ipairs(redis.call('LRANGE', inbox, 0, -1)) do
  local id = header(item)[2]
  local is_begun = place == 1 and run[1] == id
  if not is_begun and (whole or id == ARGV[2]) then
    redis.call('LREM', inbox, 1, item)
    if outcome == 'nothing' then outcome = 'withdrawn' end
  end
  if is_begun and run[2] == 'running' and (whole or id == ARGV[2]) then
    redis.call('HSET', key, 'cancel', 1)
    outcome = 'cancelled'
  end
end
return outcome
