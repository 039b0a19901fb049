-- conversation, 1 | 0, history ttl → 1
local thread = K.thread .. real(ARGV[1])
if ARGV[2] == '1' then
  redis.call('HSET', thread, 'muted', 1)
  redis.call('EXPIRE', thread, ARGV[3])
else
  redis.call('HDEL', thread, 'muted')
end
return 1
