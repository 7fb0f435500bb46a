//! The table of stories: each one's name and the policy it is told under.

/// Calls `$test!` with every story, by file. A test binary makes one test of each.
macro_rules! stories {
    ($test:ident) => {
        $test! {
            limits {
                a_limit_within_bounds_arrives_untouched: ROOMY,
                a_limit_over_the_ceiling_is_clamped: ROOMY,
                a_missing_limit_is_injected: ROOMY,
                a_null_limit_counts_as_missing: ROOMY,
                a_limit_over_the_ceiling_is_refused_where_told: STRICT,
                a_declared_body_too_large_is_refused_unread: STRICT,
                a_received_body_too_large_is_refused_before_its_end: STRICT,
                a_body_of_exactly_the_limit_passes: STRICT,
                a_prompt_too_long_is_refused: STRICT,
                too_many_sequences_are_refused: STRICT,
                sequences_count_towards_the_class: ROOMY,
                an_unreadable_body_is_refused_with_its_field: ROOMY,
            }
            bodies {
                one_byte_a_chunk: ROOMY,
                trailers_end_a_body: ROOMY,
                trailers_end_an_empty_body: ROOMY,
                an_empty_body_is_refused: ROOMY,
                an_empty_chunked_body_is_refused: ROOMY,
                a_body_that_never_ends_is_refused_in_time: HASTY,
                a_body_that_never_begins_is_refused_in_time: HASTY,
                a_body_over_http2: ROOMY,
                trailers_over_http2: ROOMY,
                a_body_of_many_reads: ROOMY,
                a_body_announced_with_expect: ROOMY,
            }
            headers {
                spoofed_headers_never_reach_a_guarded_upstream: ROOMY,
                spoofed_headers_never_reach_any_upstream: ROOMY,
                the_upstreams_own_are_removed: ROOMY,
                the_client_is_told_what_was_done: ROOMY,
                server_timing_is_appended: ROOMY,
                response_headers_can_be_turned_off: QUIET,
                values_need_not_be_text: ROOMY,
            }
            types {
                an_encoded_body_is_refused: ROOMY,
                identity_is_no_encoding: ROOMY,
                multipart_is_refused: ROOMY,
                grpc_is_refused: ROOMY,
                an_upgrade_is_refused: ROOMY,
                an_offer_of_h2c_is_ignored: ROOMY,
                any_other_content_type_is_read_as_json: ROOMY,
            }
            queue {
                first_come_first_served: ONE_SLOT,
                one_beyond_capacity_is_refused_at_once: ONE_SLOT,
                who_waits_too_long_is_refused: HASTY,
                statuses_follow_the_policy: SWAPPED_STATUSES,
                capacity_zero_never_waits: NO_QUEUE,
                a_client_may_have_less_patience: ONE_SLOT,
                a_client_may_not_have_more_patience: HASTY,
                a_client_without_patience_never_waits: ONE_SLOT,
                a_client_without_patience_takes_a_free_slot: ONE_SLOT,
                patience_that_cannot_be_read_is_the_policys: ONE_SLOT,
                the_wait_is_told: ONE_SLOT,
                classes_wait_apart: ONE_SLOT,
                a_freed_place_can_be_taken: ONE_SLOT,
            }
            pools {
                the_more_urgent_goes_first: POOL,
                the_older_goes_first_within_a_class: POOL,
                both_share_the_slots: POOL,
                queues_are_the_classes_own: POOL,
                the_pools_gauges_are_right: POOL,
                a_reserved_slot_is_kept: RESERVED,
                a_class_has_its_share_at_most: CAPPED,
                who_has_waited_long_goes_before_newer_ones: PROMOTING,
                who_has_waited_long_goes_after_older_ones: PROMOTING,
                a_budget_is_kept: BUDGET,
                a_giant_runs_alone: BUDGET,
                a_giant_is_not_passed_for_ever: BUDGET,
            }
            turns {
                a_flood_delays_another_by_one_turn: TURNS,
                those_without_a_key_share_one: TURNS,
                turns_go_by_user: USERS,
            }
            leaving {
                a_client_gone_while_queued_leaves_its_place: ONE_SLOT,
                a_client_gone_before_headers_leaves_its_slot: ONE_SLOT,
                a_client_gone_mid_stream_leaves_its_slot: ONE_SLOT,
                a_client_gone_mid_body_leaves_nothing: ONE_SLOT,
                an_upstream_reset_before_headers_frees_one_slot: ONE_SLOT,
                an_upstream_reset_mid_stream_frees_one_slot: ONE_SLOT,
                an_upstream_error_frees_one_slot: ONE_SLOT,
                an_answer_frees_one_slot: ONE_SLOT,
                a_slot_is_held_to_the_end_of_a_stream: ONE_SLOT,
                a_refusal_takes_no_slot: ONE_SLOT,
            }
            bystanders {
                a_get_passes: ONE_SLOT,
                an_unlisted_post_passes_unchanged: ONE_SLOT,
                health_passes_while_all_is_full: ONE_SLOT,
                a_prefix_and_a_query_stay_guarded: ROOMY,
                an_encoded_path_stays_guarded: ROOMY,
            }
            overload {
                bodies_beyond_the_buffer_are_refused: SMALL_BUFFER,
                parked_bodies_count: SMALL_BUFFER,
            }
            operators {
                an_admitted_request_is_logged_and_counted: ROOMY,
                a_refused_request_is_logged_and_counted: ROOMY,
                a_request_refused_by_its_class_is_logged_and_counted: NO_QUEUE,
                a_client_gone_is_logged_and_counted: ONE_SLOT,
                who_passes_has_nothing_logged: ROOMY,
                gauges_follow_the_requests: ONE_SLOT,
                responses_are_counted_by_code: ROOMY,
            }
            reconfigure {
                new_requests_come_under_the_new_policy: ROOMY,
                who_waits_is_served_under_the_old_policy: ONE_SLOT,
            }
            endpoints {
                a_post_to_an_unlisted_path_is_refused: LISTED,
                a_path_of_ones_own_is_guarded: LISTED,
                a_path_that_is_let_pass_passes: LISTED,
                a_prompt_that_is_not_seen_is_never_short: ROOMY,
                each_family_is_told_in_its_own_shape: NO_QUEUE,
            }
            corpus {
                each_line_for_vllm_is_answered_rightly: REFERENCE,
                each_line_for_sglang_is_answered_rightly: REFERENCE_SGLANG,
                each_line_for_tgi_is_answered_rightly: REFERENCE_TGI,
                each_line_for_llamacpp_is_answered_rightly: REFERENCE_LLAMACPP,
                each_line_for_ollama_is_answered_rightly: REFERENCE_OLLAMA,
                each_line_for_openai_is_answered_rightly: REFERENCE_OPENAI,
            }
        }
    };
}
