-- run id, session, good | bad → 1 | 0
if redis.call('HGET', K.rec .. ARGV[1], 'session') ~= ARGV[2] then return 0 end
redis.call('HSET', K.rec .. ARGV[1], 'feedback', ARGV[3])
return 1
