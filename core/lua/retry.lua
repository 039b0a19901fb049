-- letter's id, token → 1 | 0
local once = K.once .. ARGV[2]
if redis.call('EXISTS', once) == 1 then return 1 end
local raw = redis.call('HGET', K.dead, ARGV[1])
if not raw then return 0 end
local letter = cjson.decode(raw)
local channel, user = owner(header(letter.item)[4])
redis.call('RPUSH', K.inbox .. letter.conversation, letter.item)
announce(letter.conversation)
redis.call('HDEL', K.dead, ARGV[1])
redis.call('ZREM', K.mine .. user, channel .. '|dead|' .. ARGV[1])
redis.call('SET', once, 1, 'EX', 60)
return 1
