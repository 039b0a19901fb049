-- conversation → {turn, …}, oldest first
local conversation = redis.call('GET', K.alias .. ARGV[1]) or ARGV[1]
return redis.call('LRANGE', K.hist .. conversation, 0, -1)
