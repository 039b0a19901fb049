-- session, channel, user, key, fact, epoch, most facts, undo's rest, memory ttl, run ttl
-- → {'saved', old fact or ''} | {'same'} | {'full', key, …} | {'forgotten'}
local session, channel, user, key, fact = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local memory_ttl, run_ttl = tonumber(ARGV[9]), tonumber(ARGV[10])
if tonumber(ARGV[6]) ~= epoch_of(session) then return { 'forgotten' } end

local mem, undo = K.mem .. session, K.undo .. ARGV[8]
local new = cjson.decode(fact)
local raw = redis.call('HGET', mem, key)
local back = raw or ''
if raw then
  local old = cjson.decode(raw)
  -- The reply to this very call was lost, and it is made again.
  if old.op == new.op then
    local kept = redis.call('GET', undo)
    return { 'saved', kept and cjson.decode(kept).old or '' }
  end
  if old.norm == new.norm then return { 'same' } end
  -- A run that saves twice is undone as a whole.
  if old.run_id == new.run_id then
    local kept = redis.call('GET', undo)
    if kept then back = cjson.decode(kept).old end
  end
elseif redis.call('HLEN', mem) >= tonumber(ARGV[7]) then
  return { 'full', unpack(redis.call('HKEYS', mem)) }
end

redis.call('HSET', mem, key, fact)
redis.call('EXPIRE', mem, memory_ttl)
note_place(user, channel .. '|mem|' .. session, memory_ttl)
local kept = cjson.encode({ session = session, value = new.value, old = back })
redis.call('SET', undo, kept, 'EX', run_ttl)
note_place(user, channel .. '|undo|' .. ARGV[8], run_ttl)
return { 'saved', raw or '' }
