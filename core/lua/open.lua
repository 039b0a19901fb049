-- Makes the ready stream and its group.
local made = redis.pcall('XGROUP', 'CREATE', READY, GROUP, '0', 'MKSTREAM')
return made.err and 0 or 1
