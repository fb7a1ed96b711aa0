-- RELEASE: burn the token, leave the line, and hand on what was held.
-- KEYS fn, q, one lk for each slot
-- ARGV 1 token  2 member or ""  3 claim ms  4 inboxes  5 lock
-- Returns 1 if the token held a slot, else 0

local fn, q = KEYS[1], KEYS[2]
local token, member, claim, inboxes, lock = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

if member ~= '' then redis.call('ZREM', q, member) end

local released = 0
for i = 3, #KEYS do
  local lk = KEYS[i]
  local value = redis.call('GET', lk)
  local held = mine(value, token)
  if held then released = 1 end
  if held or (member ~= '' and value == '~' .. member) then
    if not offer(lk, q, inboxes, lock, claim) then redis.call('DEL', lk) end
  end
end
remember(fn, token) -- last: a server out of memory lets a script write more that freed some
return released
