-- the consumer that holds them, then for each entry read but not begun, or parked: entry,
-- conversation → 1
for i = 2, #ARGV, 2 do
  local mine = redis.call('XPENDING', READY, GROUP, ARGV[i], ARGV[i], 1, ARGV[1])
  if #mine == 1 and redis.call('HGET', ACT, ARGV[i + 1]) == ARGV[i] then
    put_back(ARGV[i + 1], ARGV[i])
  end
end
return 1
