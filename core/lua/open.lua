-- Makes the ready stream and its group.
local made = redis.pcall('XGROUP', 'CREATE', READY, GROUP, '0', 'MKSTREAM')
if made.err and not made.err:find('BUSYGROUP', 1, true) then return made end
return 1
