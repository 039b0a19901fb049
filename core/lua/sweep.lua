-- consumer, idle ms after which an entry is abandoned, memory ttl, run ttl, then for each entry
-- that may be taken: lease, run id → {ms until the next retry found or -1, {head, …}}
local claim_ms, now, soonest, heads = tonumber(ARGV[2]), now_ms(), -1, {}
local most = (#ARGV - 4) / 2
local pending = redis.pcall('XPENDING', READY, GROUP, 'IDLE', claim_ms, '-', '+', most)
if pending.err then return { soonest, heads } end
for i, found in ipairs(pending) do
  local entry = found[1]
  local fields = redis.call('XRANGE', READY, entry, entry)[1]
  local conversation = fields and fields[2][2]
  if not conversation or redis.call('HGET', ACT, conversation) ~= entry then
    remove_entry(entry)
  else
    local due = tonumber(redis.call('HGET', K.run .. conversation, 'not_before') or 0)
    if due > now then
      park(entry, due - now, claim_ms)
      if soonest < 0 or due - now < soonest then soonest = due - now end
    else
      redis.call('XCLAIM', READY, GROUP, ARGV[1], claim_ms, entry, 'JUSTID')
      heads[#heads + 1] = head(conversation, entry, ARGV[3 + 2 * i], ARGV[4 + 2 * i],
        tonumber(ARGV[3]), tonumber(ARGV[4]))
    end
  end
end
return { soonest, heads }
