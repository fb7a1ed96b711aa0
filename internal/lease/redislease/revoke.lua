-- REVOKE: end what is held, whatever its holders say.
-- KEYS fn, q, one lk for each slot
-- ARGV 1 force: 0 or 1  2 claim ms  3 inboxes  4 lock
-- Returns how many slots were held. Without force their holders are told at their next
-- renewal, and the leases run out. With it others may have them at once.

local fn, q = KEYS[1], KEYS[2]
local claim, inboxes, lock = ARGV[2], ARGV[3], ARGV[4]

local held = {}
for i = 3, last do
  local value = redis.call('GET', KEYS[i])
  if public(value) ~= '' then held[#held + 1] = KEYS[i] end
end
if #held == 0 then return 0 end

local time = redis.call('TIME')
local fence = math.max(tonumber(redis.call('HGET', fn, 'f') or 0), time[1] * 1e6 + time[2])
if ARGV[1] == '1' then fence = fence + 1 end
redis.call('HSET', fn, 'f', string.format('%.0f', fence), 'r', string.format('%.0f', fence))
redis.call('PEXPIRE', fn, 30 * DAY)
if ARGV[1] == '1' then
  for _, lk in ipairs(held) do
    if not offer(lk, q, inboxes, lock, claim) then redis.call('DEL', lk) end
  end
end
return #held
