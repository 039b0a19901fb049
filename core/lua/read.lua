-- session, channel, user, ttl → {epoch, {key, fact, …}}
return { epoch_of(ARGV[1]), facts_of(ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])) }
