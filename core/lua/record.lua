-- run id, session → run | nil
if redis.call('HGET', K.rec .. ARGV[1], 'session') ~= ARGV[2] then return false end
return redis.call('HGET', K.rec .. ARGV[1], 'run')
