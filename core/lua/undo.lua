-- session, channel, user, key, undo's rest, token → 1 | 0
local mem, undo, once = K.mem .. ARGV[1], K.undo .. ARGV[5], K.once .. ARGV[6]
if redis.call('EXISTS', once) == 1 then return 1 end
local kept = redis.call('GET', undo)
local now = redis.call('HGET', mem, ARGV[4])
if not kept or not now then return 0 end
kept = cjson.decode(kept)
if kept.session ~= ARGV[1] or cjson.decode(now).value ~= kept.value then return 0 end
if kept.old == '' then
  redis.call('HDEL', mem, ARGV[4])
else
  redis.call('HSET', mem, ARGV[4], kept.old)
end
redis.call('DEL', undo)
redis.call('ZREM', K.mine .. ARGV[3], ARGV[2] .. '|undo|' .. ARGV[5])
redis.call('SET', once, 1, 'EX', 60)
return 1
