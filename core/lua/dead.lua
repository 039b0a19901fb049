-- → {letter, …}
return redis.call('HVALS', K.dead)
