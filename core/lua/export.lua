-- session, channel, user (escaped), user → {{key, fact, …}, {turn, …}, {run, …}}
local turns, runs = {}, {}
for _, place in ipairs(redis.call('ZRANGE', K.mine .. ARGV[3], 0, -1)) do
  local channel, kind, rest = place:match('^([^|]*)|([^|]*)|(.*)$')
  if channel == ARGV[2] and kind == 'hist' then
    for _, item in ipairs(redis.call('LRANGE', K.hist .. rest, 0, -1)) do
      if cjson.decode(item).author_id == ARGV[4] then turns[#turns + 1] = item end
    end
  elseif channel == ARGV[2] and kind == 'rec' then
    local run = redis.call('HGET', K.rec .. rest, 'run')
    if run then runs[#runs + 1] = run end
  end
end
return { redis.call('HGETALL', K.mem .. ARGV[1]), turns, runs }
