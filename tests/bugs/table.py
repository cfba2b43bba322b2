"""Where each known fault of tree learners is tested, or why it cannot occur yet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """Why no test holds a case: one sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class At:
    """Tests of one file, a path below ``tests/``."""

    file: str
    names: tuple[str, ...]


def at(file: str, *names: str) -> At:
    return At(file, names)


NUMBERS, STRUCTURE, MISSING = "bugs/test_numbers.py", "bugs/test_structure.py", "bugs/test_missing.py"
CATEGORIES, LABELS, WEIGHTS = "bugs/test_categories.py", "bugs/test_labels.py", "bugs/test_weights.py"
CUDA, ARRAYS, CACHE = "backends/test_cuda.py", "backends/test_device_arrays.py", "backends/test_cupy_cache.py"
SHAPES, MODELS, WORK = "bugs/test_shapes.py", "bugs/test_models.py", "bugs/test_work.py"

TABLE: dict[str, tuple[At, ...] | Reason] = {
    "C01": (at(CATEGORIES, "test_C01_means_of_categories_are_exact", "test_C01_shares_of_categories_are_exact"),),
    "C02": (
        at(
            CATEGORIES,
            "test_C02_an_unseen_category_follows_the_largest_child",
            "test_C02_a_category_declared_and_never_met_is_known_but_unmet",
            "test_C02_categories_met_elsewhere_but_not_in_the_node",
            "test_C02_missing_is_not_unknown",
        ),
    ),
    "C04": (
        at(
            CATEGORIES,
            "test_C04_memory_follows_distinct_values_not_their_size",
            "test_C04_any_number_can_be_a_category",
        ),
    ),
    "C05": (
        at(
            CATEGORIES,
            "test_C05_any_number_of_categories_about_the_powers_of_two",
            "test_C05_more_categories_than_15_bits_can_number",
        ),
    ),
    "C07": (
        at(
            CATEGORIES,
            "test_C07_the_numbers_of_categories_mean_nothing",
            "test_C07_names_that_sort_alike_give_the_same_arrays",
        ),
    ),
    "C08": (
        at(
            CATEGORIES,
            "test_C08_text_that_reads_as_a_number_is_refused_with_the_column_and_the_value",
            "test_C08_text_in_a_column_of_numbers_is_refused_with_the_column_and_the_value",
            "test_C08_a_column_of_two_types_is_refused_with_the_column_and_the_types",
        ),
    ),
    "E01": (
        at(MODELS, "test_E01_quotes_brackets_and_line_feeds_stay_in_their_place"),
        at("inspect/test_graphviz.py", "test_odd_characters_come_out_as_they_went_in"),
    ),
    "E02": (at(MODELS, "test_E02_names_in_any_container_for_one_column_and_many"),),
    "E04": (at(MODELS, "test_E04_a_threshold_is_printed_with_as_many_digits_as_are_asked_for"),),
    "E05": (at(MODELS, "test_E05_a_deep_tree_needs_no_recursion"),),
    "F01": Reason(
        "there is no forest of our own yet, so no out-of-bag score; scikit-learn's BaggingClassifier makes its own"
    ),
    "F02": Reason("there is no forest of our own yet, so no warm start; a single tree has none"),
    "F04": Reason("there is no forest of our own yet, so no max_samples"),
    "F05": (at(MODELS, "test_F05_all_rows_and_columns_are_learnt_exactly"),),
    "F07": Reason("there is no forest of our own yet, so no mean over estimators_"),
    "F08": Reason("there is no forest of our own yet, so no bags whose rows could be drawn a second time"),
    "F10": Reason("there is no forest of our own yet, so no out-of-bag score that label names could disturb"),
    "G01": (at(WORK, "test_G01_import_is_quiet_without_a_card"),),
    "G02": (at(WORK, "test_G02_a_forked_child_predicts_and_fits"),),
    "G04": (at(WORK, "test_G04_a_loop_of_fits_is_flat", "test_G04_a_loop_of_fits_of_frames_keeps_no_frame"),),
    "G05": (
        at(
            ARRAYS,
            "test_tables_in_device_memory_stay_there",
            "test_tables_of_every_layout",
            "test_what_cannot_stay_on_the_device_is_copied",
            "test_other_shapes_in_device_memory_are_refused",
        ),
    ),
    "G07": (
        at(CUDA, "test_the_current_device_stays_current", "test_the_current_device_stays_current_after_a_failure"),
        at(ARRAYS, "test_a_table_on_another_device_is_refused"),
    ),
    "G08": (
        at(WORK, "test_G08_after_a_failure_the_next_fit_works"),
        at(
            CUDA,
            "test_memory_is_given_back_after_a_failure",
            "test_memory_is_given_back_after_a_fit_that_stops",
            "test_too_little_memory_is_a_memory_error",
        ),
    ),
    "I01": (at(MODELS, "test_I01_a_tree_without_a_split_has_importances_of_zero"),),
    "I02": (at(MODELS, "test_I02_importances_sum_to_one_and_a_constant_column_has_none"),),
    "L01": (at(LABELS, "test_L01_text_labels_come_back"),),
    "L02": (at(LABELS, "test_L02_labels_that_are_no_ranks_come_back", "test_L02_outputs_keep_their_own_labels"),),
    "L04": (at(LABELS, "test_L04_one_class"),),
    "L05": (
        at(
            LABELS,
            "test_L05_a_class_without_weight_keeps_its_column",
            "test_L05_a_class_that_class_weight_silences_keeps_its_column",
        ),
    ),
    "L07": (at(LABELS, "test_L07_labels_keep_their_type_and_value"),),
    "L08": (
        at(
            LABELS,
            "test_L08_missing_mixed_and_continuous_labels_are_refused",
            "test_L08_targets_that_are_no_finite_numbers_are_refused",
        ),
    ),
    "L10": (at(LABELS, "test_L10_y_and_weights_count_by_position"),),
    "L11": (at(LABELS, "test_L11_lengths_that_differ_are_refused"),),
    "M01": (
        at(
            MISSING,
            "test_M01_missing_against_one_known_value_is_a_split",
            "test_M01_missing_against_one_category_is_a_split",
            "test_M01_missing_values_of_a_sparse_column",
        ),
    ),
    "M02": (at(MISSING, "test_M02_missing_rows_are_counted_once", "test_M02_every_node_holds_what_its_rows_say"),),
    "M04": (
        at(
            MISSING,
            "test_M04_missing_values_have_a_side_of_their_own_at_every_depth",
            "test_M04_copies_of_a_model_keep_the_direction",
        ),
    ),
    "M05": (at(MISSING, "test_M05_no_impurity_is_negative", "test_M05_the_impurity_of_a_pure_node_is_zero"),),
    "M07": (
        at(
            MISSING,
            "test_M07_the_decision_path_ends_in_the_leaf_of_apply",
            "test_M07_the_path_of_categories_ends_in_the_leaf_of_apply",
        ),
    ),
    "M08": (
        at(
            MISSING,
            "test_M08_a_column_of_missing_values_only_is_never_used",
            "test_M08_a_column_without_values_of_any_type_gives_one_leaf",
        ),
    ),
    "M10": (
        at(
            MISSING,
            "test_M10_missing_rows_of_weight_zero_count_for_nothing",
            "test_M10_missing_rows_count_with_their_weight",
        ),
    ),
    "M11": (
        at(
            MISSING,
            "test_M11_nullable_numbers_are_floats_with_missing_values",
            "test_M11_polars_nulls_are_missing_values",
            "test_M11_nullable_booleans_are_zeros_ones_and_missing_values",
        ),
    ),
    "N01": (
        at(
            NUMBERS,
            "test_N01_the_midpoint_of_huge_values_does_not_overflow",
            "test_N01_the_ends_of_every_float_type_are_told_apart",
        ),
    ),
    "N02": (at(NUMBERS, "test_N02_neighbouring_floats_are_told_apart"),),
    "N04": (
        at(
            NUMBERS,
            "test_N04_rows_close_together_arrive_where_they_were_counted",
            "test_N04_a_type_at_predict_that_is_not_that_of_the_fit",
        ),
    ),
    "N05": (
        at(
            NUMBERS,
            "test_N05_dates_of_eight_digits_are_told_apart",
            "test_N05_the_printed_date_parts_the_rows_as_the_tree_does",
        ),
    ),
    "N07": (at(NUMBERS, "test_N07_integers_beyond_float32_are_told_apart"),),
    "N08": (at(NUMBERS, "test_N08_integers_beyond_float64_are_one_value_or_told_apart"),),
    "N10": (at(NUMBERS, "test_N10_values_beyond_float32_stay_finite", "test_N10_infinities_have_finite_neighbours"),),
    "N11": (at(NUMBERS, "test_N11_denormals_route_alike_at_fit_and_predict"),),
    "N13": (
        at(
            NUMBERS,
            "test_N13_a_big_offset_of_y_does_not_hide_its_step",
            "test_N13_weights_and_other_outputs_do_not_bring_the_offset_back",
            "test_N13_poisson_sees_a_step_beside_an_offset",
            "test_N13_the_deviance_of_a_step_beside_an_offset",
        ),
    ),
    "N14": (
        at(
            NUMBERS,
            "test_N14_a_constant_target_is_not_split",
            "test_N14_constant_outputs_and_single_classes_are_not_split",
        ),
    ),
    "N16": (at(NUMBERS, "test_N16_N17_small_targets_are_split"),),
    "N17": (
        at(
            NUMBERS,
            "test_N16_N17_small_targets_are_split",
            "test_N17_a_small_output_is_learnt_beside_a_large_one",
            "test_N17_poisson_knows_no_floor",
            "test_N17_huge_targets_are_split",
            "test_N17_targets_that_leave_the_range_of_floats_are_refused",
        ),
    ),
    "N19": (at(NUMBERS, "test_N19_large_targets_come_back_exactly", "test_N19_all_53_bits_of_a_target_come_back"),),
    "N20": (
        at(
            NUMBERS,
            "test_N20_sums_of_unlike_weights_do_not_lose_rows",
            "test_N20_a_million_rows_are_added_without_loss",
        ),
    ),
    "N22": (
        at(
            NUMBERS,
            "test_N22_the_threshold_is_the_middle_of_a_gap",
            "test_N22_codes_that_no_row_of_a_node_has_do_not_pull_the_threshold",
        ),
    ),
    "N23": (
        at(
            NUMBERS,
            "test_N23_midpoints_of_small_types_do_not_wrap",
            "test_N23_the_ends_of_every_integer_type_are_told_apart",
        ),
    ),
    "N25": (at(NUMBERS, "test_N25_dates_are_refused_with_the_remedy"),),
    "O01": (at(STRUCTURE, "test_O01_rows_times_columns_beyond_32_bits"),),
    "O02": (at(STRUCTURE, "test_O02_more_leaves_than_16_bits_can_number"),),
    "O04": (at(STRUCTURE, "test_O04_many_classes"),),
    "O05": (at(STRUCTURE, "test_O05_weights_whose_sum_exceeds_32_or_64_bits"),),
    "P01": (at(MODELS, "test_P01_the_pruning_path_is_sorted_nested_and_ends_in_the_root"),),
    "P02": (at(MODELS, "test_P02_weights_count_in_the_pruning_path"),),
    "Q01": (
        at(
            WORK,
            "test_Q01_the_criterion_that_was_quadratic_is_refused_with_the_alternatives",
            "test_Q01_work_grows_with_rows_not_their_square",
        ),
    ),
    "Q02": (at(WORK, "test_Q02_small_tables_start_no_thread_and_visit_every_row_once_a_level"),),
    "Q04": (at(WORK, "test_Q04_one_row_costs_its_path_not_the_tree"),),
    "Q05": (
        at(
            WORK,
            "test_Q05_a_chain_costs_its_rows_not_two_to_the_depth",
            "test_Q05_memory_of_a_fit_follows_the_table_not_the_depth",
            "test_Q05_many_classes_do_not_square",
            "test_Q05_a_sparse_table_is_never_made_dense",
        ),
    ),
    "S01": (at(SHAPES, "test_S01_S02_fewer_rows_than_bins"),),
    "S02": (at(SHAPES, "test_S01_S02_fewer_rows_than_bins", "test_S02_one_two_and_three_rows"),),
    "S04": (at(SHAPES, "test_S04_empty_tables_are_refused", "test_S04_no_rows_at_predict_are_refused"),),
    "S05": (at(SHAPES, "test_S05_every_container_gives_one_answer", "test_S05_y_and_weights_in_every_kind_of_memory"),),
    "S07": (
        at(
            SHAPES,
            "test_S07_other_columns_than_those_of_the_fit_are_refused",
            "test_S07_another_number_of_columns_is_refused",
        ),
    ),
    "S08": (at(SHAPES, "test_S08_inputs_are_never_changed", "test_S08_frames_are_never_changed"),),
    "S10": (at(SHAPES, "test_S10_the_tail_of_a_spike_is_found"),),
    "S11": (
        at(
            SHAPES,
            "test_S11_the_largest_value_is_split_off_whatever_the_number_of_rows",
            "test_S11_both_ends_are_split_off_as_numbers_and_as_codes",
        ),
    ),
    "S13": (at(SHAPES, "test_S13_clone_works_and_an_unfitted_model_says_so"),),
    "S14": (at(SHAPES, "test_S14_what_is_no_table_is_refused"),),
    "T01": (at(STRUCTURE, "test_T01_three_fits_are_equal_to_the_bit"),),
    "T02": (at(STRUCTURE, "test_T02_several_threads_at_once_give_what_one_gives"),),
    "T04": (
        at(STRUCTURE, "test_T04_row_order_does_not_change_the_model", "test_T04_row_order_does_not_order_categories"),
    ),
    "T05": (
        at(
            STRUCTURE,
            "test_T05_a_common_factor_of_the_weights_does_not_change_the_tree",
            "test_T05_a_common_factor_changes_neither_queue_nor_draws",
            "test_T05_a_common_factor_does_not_change_sets_of_categories",
        ),
    ),
    "T06": (at(WEIGHTS, "test_U25_balanced_classes_in_one_leaf_are_tied_and_the_first_is_told"),),
    "T07": (at(STRUCTURE, "test_T07_an_increasing_map_of_x_keeps_training_predictions"),),
    "T08": (
        at(STRUCTURE, "test_T08_max_depth_holds_beside_max_leaf_nodes", "test_T08_no_leaf_lies_deeper_than_max_depth"),
    ),
    "T10": (at(STRUCTURE, "test_T10_the_least_share_of_weight_holds_with_and_without_weights"),),
    "T11": (
        at(
            STRUCTURE,
            "test_T11_an_exact_half_of_the_weight_is_allowed",
            "test_T11_copies_of_rows_do_not_change_the_tree",
        ),
    ),
    "T13": (
        at(
            STRUCTURE,
            "test_T13_a_decrease_that_is_just_met_splits",
            "test_T13_decreases_of_classes_that_are_just_met_split",
        ),
    ),
    "T14": (at(STRUCTURE, "test_T14_a_column_constant_in_one_node_is_tried_in_its_sibling"),),
    "U01": (at(MODELS, "test_U01_an_edited_model_file_is_refused"),),
    "U02": (
        at(MODELS, "test_U02_formats_of_the_file_are_numbered"),
        at("test_io_formats.py", "test_a_file_of_every_format_predicts_what_it_always_did"),
    ),
    "U04": (
        at(CUDA, "test_a_cache_that_cannot_be_written"),
        at(CACHE, "test_a_second_process_compiles_nothing", "test_many_processes_fill_an_empty_cache"),
    ),
    "U05": (at(CUDA, "test_no_compiler_for_the_card", "test_a_card_that_is_too_old"),),
    "U07": (
        at(CUDA, "test_launches_do_not_grow_with_nodes", "test_auto_leaves_small_work_to_the_cpu"),
        at(CACHE, "test_a_second_process_compiles_nothing"),
    ),
    "U08": (at("backends/test_sizes.py", "test_the_plan_fits_and_covers", "test_every_row_counts_right"),),
    "U10": (at(MODELS, "test_U10_the_statistics_of_a_node_are_those_of_its_children"),),
    "U11": Reason(
        "there is no distributed fit yet: one process sees all rows, and its classes are those of all of them"
    ),
    "U13": (
        at(
            CATEGORIES,
            "test_U13_numbers_that_are_no_category_are_unknown",
            "test_U13_missing_is_asked_before_the_set",
            "test_U13_numbers_of_categories_that_are_none_are_unknown",
            "test_U13_a_set_may_be_empty",
        ),
    ),
    "U14": (at(MODELS, "test_U14_monotone_predictions_on_a_fine_grid"),),
    "U16": (at("inspect/test_text.py", "test_rules_that_are_read_back_give_the_predictions"),),
    "U17": (at(MODELS, "test_U17_commas_blanks_and_missing_text_survive_every_format"),),
    "U19": (at(MODELS, "test_U19_values_beyond_1e30_are_routed_as_they_were_counted"),),
    "U20": (at(MODELS, "test_U20_an_unlimited_tree_has_no_training_error"),),
    "U22": (
        at(
            SHAPES,
            "test_U22_parameters_are_what_they_are_in_scikit_learn",
            "test_U22_every_parameter_of_scikit_learn_is_one_of_ours",
        ),
    ),
    "U23": (at(MODELS, "test_U23_bags_of_one_row_and_one_class"),),
    "U25": (at(WEIGHTS, "test_U25_balanced_classes_in_one_leaf_are_tied_and_the_first_is_told"),),
    "U26": (at(MODELS, "test_U26_the_docstring_says_what_an_importance_means"),),
    "W01": (
        at(
            WEIGHTS,
            "test_W01_rows_of_weight_zero_are_gone",
            "test_W01_a_ghost_between_the_classes_moves_no_threshold",
            "test_W01_a_category_of_ghosts_has_no_row",
            "test_W01_ghosts_do_not_count_in_the_pruning_path",
        ),
    ),
    "W02": (at(WEIGHTS, "test_W02_negative_weights_are_refused", "test_W02_negative_class_weights_are_refused"),),
    "W04": (
        at(
            WEIGHTS,
            "test_W04_weights_that_make_no_sense_are_refused",
            "test_W04_weights_in_every_container",
            "test_W04_one_number_weighs_all_rows",
        ),
    ),
    "W05": (
        at(
            WEIGHTS,
            "test_W05_weights_over_fifteen_decades_give_finite_impurities",
            "test_W05_the_lightest_row_still_counts_as_a_row",
        ),
    ),
    "W07": (at(WEIGHTS, "test_W07_a_weight_is_a_number_of_copies"),),
    "W08": (
        at(
            WEIGHTS,
            "test_W08_class_weights_equal_explicit_weights",
            "test_W08_leaves_carry_the_class_weight",
            "test_W08_class_weights_that_are_none_are_told_as_such",
            "test_W08_balanced_gives_every_class_the_same_weight",
            "test_W08_every_output_has_class_weights_of_its_own",
            "test_W08_class_weights_that_name_no_class_are_refused",
        ),
    ),
    "Z01": (at(MODELS, "test_Z01_pickled_and_copied_models_live_on", "test_Z01_an_unfitted_model_is_pickled_too"),),
    "Z02": (at(MODELS, "test_Z02_a_model_of_another_device_predicts_here"),),
}
