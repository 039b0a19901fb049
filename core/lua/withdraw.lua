-- conversation, message id, the same escaped → 'withdrawn' | 'cancelled' | 'nothing'
local conversation = redis.call('GET', K.seen .. ARGV[3]) or real(ARGV[1])
local key = K.run .. conversation
local run = redis.call('HMGET', key, 'message_id', 'phase')
if run[1] == ARGV[2] then
  if run[2] ~= 'running' then return 'nothing' end
  redis.call('HSET', key, 'cancel', 1)
  return 'cancelled'
end
for _, item in ipairs(redis.call('LRANGE', K.inbox .. conversation, 0, -1)) do
  if header(item)[2] == ARGV[2] then
    redis.call('LREM', K.inbox .. conversation, 1, item)
    return 'withdrawn'
  end
end
return 'nothing'
