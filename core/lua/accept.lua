-- conversation, conversation of the message replied to or '', message id (escaped), the rest of
-- the item's first line, message, needs engaged 1 | 0, history ttl → {outcome, conversation}
local conversation, reply_to = real(ARGV[1]), ARGV[2]
if conversation == ARGV[1] and reply_to ~= ''
  and redis.call('EXISTS', K.thread .. conversation) == 0 then
  local replied = real(reply_to)
  if replied ~= reply_to or redis.call('EXISTS', K.thread .. replied) == 1 then
    conversation = replied
  end
end
local seen = K.seen .. ARGV[3]
local earlier = redis.call('GET', seen)
if earlier then return { 'duplicate', earlier } end

local thread = K.thread .. conversation
local state = redis.call('HMGET', thread, 'engaged', 'muted')
if ARGV[6] == '1' then
  if not state[1] then return { 'not_engaged', conversation } end
  if state[2] then return { 'muted', conversation } end
end
redis.call('SET', seen, conversation, 'EX', 3600)
redis.call('HSET', thread, 'engaged', 1)
redis.call('EXPIRE', thread, ARGV[7])
redis.call('RPUSH', K.inbox .. conversation, '[' .. now_ms() .. ',' .. ARGV[4] .. '\n' .. ARGV[5])
announce(conversation)
return { 'queued', conversation }
