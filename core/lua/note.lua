-- conversation, label, text, most, ttl → 1
local key = K.notes .. real(ARGV[1])
redis.call('RPUSH', key, cjson.encode({ ARGV[2], ARGV[3] }))
redis.call('LTRIM', key, -tonumber(ARGV[4]), -1)
redis.call('EXPIRE', key, ARGV[5])
return 1
