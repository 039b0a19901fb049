-- session, channel, user, key, escaped key, digest or '', token → 1 | 0
local mem, mine, once = K.mem .. ARGV[1], K.mine .. ARGV[3], K.once .. ARGV[7]
if redis.call('EXISTS', once) == 1 then return 1 end
local fact = redis.call('HGET', mem, ARGV[4])
if not fact then return 0 end
if ARGV[6] ~= '' and redis.sha1hex(cjson.decode(fact).value) ~= ARGV[6] then return 0 end
redis.call('HDEL', mem, ARGV[4])
-- What an Undo would restore is a copy of the fact.
local start, ending = ARGV[2] .. '|undo|', '/' .. ARGV[5]
for _, place in ipairs(redis.call('ZRANGE', mine, 0, -1)) do
  if place:sub(1, #start) == start and place:sub(-#ending) == ending then
    redis.call('DEL', K.undo .. place:sub(#start + 1))
    redis.call('ZREM', mine, place)
  end
end
redis.call('SET', once, 1, 'EX', 60)
return 1
