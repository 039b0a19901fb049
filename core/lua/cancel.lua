-- conversation, user → 'cancelled' | 'not_asker' | 'nothing'
local key = K.run .. real(ARGV[1])
local run = redis.call('HMGET', key, 'user', 'phase')
if run[2] ~= 'running' then return 'nothing' end
if run[1] ~= ARGV[2] then return 'not_asker' end
redis.call('HSET', key, 'cancel', 1)
return 'cancelled'
