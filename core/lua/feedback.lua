-- run id, session, good | bad, run ttl → 1 | 0
if redis.call('HGET', K.rec .. ARGV[1], 'session') ~= ARGV[2] then return 0 end
redis.call('HSET', K.rec .. ARGV[1], 'feedback', ARGV[3])
if ARGV[3] == 'bad' then note_gap(ARGV[1], tonumber(ARGV[4])) end
return 1
