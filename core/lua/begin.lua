-- consumer, memory ttl, run ttl, then for each entry read: entry, conversation, lease, run id
-- → {head, …}
local heads = {}
for i = 4, #ARGV, 4 do
  local entry, conversation, lease, run_id = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local found = { 'lost' }
  -- Since it was read, a sweep may have given the entry to another worker.
  if #redis.call('XPENDING', READY, GROUP, entry, entry, 1, ARGV[1]) == 1 then
    if redis.call('HGET', ACT, conversation) == entry then
      found = head(conversation, entry, lease, run_id, tonumber(ARGV[2]), tonumber(ARGV[3]))
    else
      remove_entry(entry)
    end
  end
  heads[#heads + 1] = found
end
return heads
