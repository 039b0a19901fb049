-- conversation, entry, lease, message id → 1 | 0 lost
if not is_mine(ARGV[1], ARGV[3], ARGV[4]) then return 0 end
put_back(ARGV[1], ARGV[2])
return 1
