-- cursor, time in ms before which dead letters are dropped → {next cursor, conversations repaired}
local scan = redis.call('HSCAN', ACT, ARGV[1], 'COUNT', 200)
local repaired = 0
for i = 1, #scan[2], 2 do
  local conversation, entry = scan[2][i], scan[2][i + 1]
  if #redis.call('XRANGE', READY, entry, entry) == 0 then
    redis.call('HDEL', ACT, conversation)
    redis.call('XACK', READY, GROUP, entry)
    if redis.call('EXISTS', K.inbox .. conversation) == 1 then
      announce(conversation)
      repaired = repaired + 1
    end
  end
end
if scan[1] == '0' then
  local letters = redis.call('HGETALL', K.dead)
  for i = 1, #letters, 2 do
    if cjson.decode(letters[i + 1]).at < tonumber(ARGV[2]) then
      redis.call('HDEL', K.dead, letters[i])
    end
  end
end
return { scan[1], repaired }
