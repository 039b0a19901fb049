-- conversation, history ttl, alias, … → 1
add_aliases(real(ARGV[1]), 3, ARGV[2])
return 1
