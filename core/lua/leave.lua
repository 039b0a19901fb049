-- consumer, whether it is to be handed over 1 | 0 → 1 when nothing is left of it, else 0
local pending = redis.pcall('XPENDING', READY, GROUP, '-', '+', 1000, ARGV[1])
if pending.err then return 1 end
for _, found in ipairs(ARGV[2] == '1' and pending or {}) do
  local fields = redis.call('XRANGE', READY, found[1], found[1])[1]
  local conversation = fields and fields[2][2]
  if conversation and redis.call('HGET', ACT, conversation) == found[1] then
    put_back(conversation, found[1])
  else
    remove_entry(found[1])
  end
end
-- Deleting a consumer deletes what is pending with it.
if #redis.call('XPENDING', READY, GROUP, '-', '+', 1, ARGV[1]) > 0 then return 0 end
redis.call('XGROUP', 'DELCONSUMER', READY, GROUP, ARGV[1])
return 1
