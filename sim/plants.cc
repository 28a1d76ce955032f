#include "sim/plants.h"

namespace rq::sim {

const std::vector<Plant>& plants() {
  static const std::vector<Plant> all = {
      {"acknowledge_before_barrier", "publishes are answered before their barrier ended", "power_loss_ms=800 disk_us=10000", 40},
      {"skip_directory_sync", "a new file's directory is not synced", "power_loss_ms=1500", 40},
      {"reuse_id_after_crash", "the id block is not made durable before its first use",
       "admin_gap_ms=100 removals=1000 kill_ms=2000 power_loss_ms=0 partition_ms=0", 60},
      {"forget_wal_in_barrier", "one Channel WAL is left out of the barrier", "power_loss_ms=1500 channels=2", 60},
      {"answer_before_write", "a relaxed mode answers when the append is submitted",
       "ack_mode=1 kill_ms=3000 disk_us=30000 publish_gap_ms=2 requests=500 power_loss_ms=0", 100},
      {"truncate_wal_before_checkpoint", "a checkpoint empties the WAL before it is in place",
       "crash_step=30 buggify=1000 rdy=1 think_ms=0 net_us=20 stall=0 publish_gap_ms=10 requests=500 kill_ms=0 power_loss_ms=0",
       60},
      {"credit_before_barrier", "RDY room grows before the FIN is durable",
       "power_loss_ms=800 rdy=1 think_ms=0 disk_us=5000 lookups=0", 60},
      {"answer_pause_early", "the pause of a Channel is answered before it is durable",
       "admin_gap_ms=5 removals=0 power_loss_ms=2500 disk_us=20000 net_us=20 stall=0 kill_ms=0 stop_ms=0 crash_step=0 "
       "safety_ms=15000",
       100},
      {"collect_past_a_channel", "collection looks at no Channel's floor",
       "collect_s=0 bootstrap_s=1 segment_bytes=700 body_bytes=600 body_bytes_max=400 think_ms=400", 60},
      {"half_a_lease", "a message times out after half its lease",
       "timeout_ms=10000 think_ms=400 ignore=100 kill_ms=0 power_loss_ms=0 stop_ms=0", 60},
      {"trust_the_disk", "a body's checksum is not looked at",
       "rot_ms=100 segment_bytes=700 body_bytes=600 body_bytes_max=400 entry_cache_bytes=1 think_ms=400", 60},
      {"late_channel_starts_empty", "a later Channel misses the bootstrap window",
       "late_channel_ms=2000 bootstrap_s=90 clock_step_ms=0", 60},
      {"keep_the_expired", "messages outlive their TTL",
       "policy_gap_ms=300 ttl_s=1 think_ms=400 rdy=1 clock_step_ms=0 disk_us=50 net_us=20 stall=0 safety_ms=15000", 60},
      {"empty_takes_the_next", "Empty finishes a message that comes after it", "admin_gap_ms=200 removals=1000", 60},
      {"forget_attempts_at_stop", "a clean stop does not keep the attempts", "stop_ms=1000 ignore=200 hang_up=100", 60},
      {"show_counters_before_they_are_durable", "/stats shows requeues and timeouts that a crash takes back",
       "stall=15 power_loss_ms=4000 net_us=20 rdy=2500 safety_ms=15000 heartbeat_ms=1000 admin_gap_ms=5 publish_gap_ms=10 "
       "requests=500 "
       "kill_ms=0 stop_ms=0 crash_step=0 req=900 think_ms=5 req_ms=1",
       40},
      {"forget_operation_result", "a managed operation is answered before its result is durable",
       "manage_gap_ms=20 kill_ms=1500 partition_ms=0", 60},
      {"keep_the_old_token", "a token file is read once",
       "manage_gap_ms=20 token_ms=2000 stall=0 net_us=20 disk_us=50 safety_ms=15000", 40},
      {"publish_under_pressure", "publishing goes on although the volume looks full",
       "pressure_ms=1500 stall=0 net_us=20 disk_us=50 publish_gap_ms=20 requests=800 safety_ms=15000", 40},
      {"forget_name_changes", "a lookup server hears of no name after its connection was made",
       "lookups=1 lookup_gap_ms=0 lookup_lies=0", 10},
      {"letter_without_copy", "a dead letter leaves its Channel without a copy",
       "max_attempts=2 req=300 ignore=200 timeout_ms=1000", 40},
      {"skip_tail_rewrite", "a start takes clean pages for durable ones", "sync_fail=40 power_loss_ms=1500 kill_ms=1000", 100},
  };
  return all;
}

}  // namespace rq::sim
