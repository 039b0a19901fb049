-- conversation, lease, message id, data, elapsed ms → 1 | 0 lost
local key = K.run .. ARGV[1]
if not is_mine(ARGV[1], ARGV[2], ARGV[3]) then return 0 end
redis.call('HSET', key, 'elapsed_ms', ARGV[5])
-- What was forgotten must not come back as a checkpoint.
if is_fresh(ARGV[1]) then redis.call('HSET', key, 'checkpoint', ARGV[4]) end
return 1
