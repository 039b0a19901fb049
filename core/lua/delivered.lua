-- conversation, entry, lease, message id, next run id, memory ttl, run ttl, history ttl, alias, …
-- → head
local conversation, entry, lease, run_id = ARGV[1], ARGV[2], ARGV[3], ARGV[5]
local memory_ttl, run_ttl = tonumber(ARGV[6]), tonumber(ARGV[7])
if not is_mine(conversation, lease, ARGV[4]) then
  return after_end(conversation, entry, lease, run_id, memory_ttl, run_ttl)
end
-- A full server allows what needs memory only after something was removed.
local following = next_head(conversation, entry, lease, run_id, memory_ttl, run_ttl)
add_aliases(conversation, 9, ARGV[8])
return following
