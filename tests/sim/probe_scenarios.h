// Directed scenarios that bring the Broker into a state that seeds reach rarely or never. Each also states what has to come out.
#pragma once

#include <string_view>

namespace rq::sim::scenarios {

// Connections and HTTP (probe_scenarios_net.cc)
void accept_without_handles();
void connection_budget();
void stalled_body();
void reader_that_stopped();
void silent_client();
void broker_that_stood_still();
void touch_to_the_limit();
void sampling();
void http_limits();
void http_bad_requests();
void publishing_to_a_full_disk();

// TLS, compression, AUTH (probe_scenarios_transport.cc)
void misbehaving_transports();
void auth_memory_used_up();

// Live feeds (probe_scenarios_live.cc)
void live_feeds();

// Storage (probe_scenarios_storage.cc)
void emptied_while_its_body_is_read();
void emptied_behind_a_fin();
void damaged_body();
void full_group();
void large_group();
void lost_broker_meta();
void temporaries_of_a_crash();
void swapped_sidecar();
void deferred_scan_residue();
void positions_known_but_lost();
void ephemeral_bounds();
void deleted_while_it_is_scrubbed();
void dead_letters();
void delivery_budget();

// Management (probe_scenarios_management.cc)
void management_repeated();
void management_meets_waiting_requests();

struct Scenario {
  const char* name;
  void (*run)();
};
inline constexpr Scenario kAll[] = {
    {"accept_without_handles", accept_without_handles},
    {"connection_budget", connection_budget},
    {"stalled_body", stalled_body},
    {"reader_that_stopped", reader_that_stopped},
    {"silent_client", silent_client},
    {"broker_that_stood_still", broker_that_stood_still},
    {"touch_to_the_limit", touch_to_the_limit},
    {"sampling", sampling},
    {"http_limits", http_limits},
    {"http_bad_requests", http_bad_requests},
    {"publishing_to_a_full_disk", publishing_to_a_full_disk},
    {"misbehaving_transports", misbehaving_transports},
    {"auth_memory_used_up", auth_memory_used_up},
    {"live_feeds", live_feeds},
    {"emptied_while_its_body_is_read", emptied_while_its_body_is_read},
    {"emptied_behind_a_fin", emptied_behind_a_fin},
    {"damaged_body", damaged_body},
    {"full_group", full_group},
    {"large_group", large_group},
    {"lost_broker_meta", lost_broker_meta},
    {"temporaries_of_a_crash", temporaries_of_a_crash},
    {"swapped_sidecar", swapped_sidecar},
    {"deferred_scan_residue", deferred_scan_residue},
    {"positions_known_but_lost", positions_known_but_lost},
    {"ephemeral_bounds", ephemeral_bounds},
    {"deleted_while_it_is_scrubbed", deleted_while_it_is_scrubbed},
    {"management_repeated", management_repeated},
    {"management_meets_waiting_requests", management_meets_waiting_requests},
    {"dead_letters", dead_letters},
    {"delivery_budget", delivery_budget},
};

}  // namespace rq::sim::scenarios
