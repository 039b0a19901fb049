-- user → {place, …} where words of the user are kept
return redis.call('ZRANGEBYSCORE', K.mine .. ARGV[1], redis.call('TIME')[1], '+inf')
