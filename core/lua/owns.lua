-- conversation, lease, message id → 1 | 0
return is_mine(ARGV[1], ARGV[2], ARGV[3]) and 1 or 0
