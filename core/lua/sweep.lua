-- consumer, idle ms after which an entry is abandoned, memory ttl, run ttl, 1 for the consumer's own
-- alone | 0, how many leases it holds, each of them, then for each entry that may be taken: lease,
-- run id → {ms until the next retry found or -1, {head, …}}
local claim_ms, now, soonest, heads = tonumber(ARGV[2]), now_ms(), -1, {}
local held, first = {}, 7 + ARGV[6]
for i = 7, first - 1 do held[ARGV[i]] = true end
local ask = { 'XPENDING', READY, GROUP, 'IDLE', claim_ms, '-', '+', (#ARGV - first + 1) / 2 }
if ARGV[5] == '1' then ask[#ask + 1] = ARGV[1] end
local pending = redis.pcall(unpack(ask))
if pending.err then return { soonest, heads } end
for i, found in ipairs(pending) do
  local entry = found[1]
  local fields = redis.call('XRANGE', READY, entry, entry)[1]
  local conversation = fields and fields[2][2]
  if not conversation or redis.call('HGET', ACT, conversation) ~= entry then
    remove_entry(entry)
  else
    local run = redis.call('HMGET', K.run .. conversation, 'not_before', 'lease')
    local due = tonumber(run[1] or 0)
    if held[run[2]] then
      -- Its run goes on there: nobody could renew it while the server was away.
      redis.call('XCLAIM', READY, GROUP, ARGV[1], 0, entry, 'JUSTID')
    elseif due > now then
      park(entry, due - now, claim_ms)
      if soonest < 0 or due - now < soonest then soonest = due - now end
    else
      redis.call('XCLAIM', READY, GROUP, ARGV[1], claim_ms, entry, 'JUSTID')
      heads[#heads + 1] = head(conversation, entry, ARGV[first - 2 + 2 * i],
        ARGV[first - 1 + 2 * i], tonumber(ARGV[3]), tonumber(ARGV[4]))
    end
  end
end
return { soonest, heads }
