-- conversation, lease, message id, ref, history ttl, alias, … → 1 | 0 lost
if not is_mine(ARGV[1], ARGV[2], ARGV[3]) then return 0 end
redis.call('HSET', K.run .. ARGV[1], 'ref', ARGV[4])
add_aliases(ARGV[1], 6, ARGV[5])
return 1
