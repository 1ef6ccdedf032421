"""Names of ONNX Runtime's package that this one does not have, by module. See _absent.py."""

MODULES: dict[str, str] = {
    "capi.convert_npz_to_onnx_adapter": "export_lora_parameters get_args",
    "capi.onnxruntime_collect_build_info": "find_cudart_versions",
    "quantization.CalTableFlatBuffers": "",
    "quantization.CalTableFlatBuffers.KeyValue": "KeyValue",
    "quantization.CalTableFlatBuffers.TrtTable": "TrtTable",
    "quantization.base_quantizer": "BaseQuantizer QuantizationParams",
    "quantization.fusions.fusion": "Fusion",
    "quantization.fusions.fusion_gelu": "FusionGelu",
    "quantization.fusions.fusion_layernorm": "FusionLayerNormalization",
    "quantization.fusions.replace_upsample_with_resize": "ReplaceUpsampleWithResize",
    "quantization.neural_compressor": "gptq_quantize rtn_quantize",
    "quantization.neural_compressor.onnx_model": "ONNXModel",
    "quantization.neural_compressor.util": "MAXIMUM_PROTOBUF find_by_name simple_progress_bar to_numpy",
    "quantization.neural_compressor.weight_only": (
        "get_weight_scale gptq gptq_quantize make_matmul_weight_only_node pad_tensor prepare_inputs qdq_tensor quant_tensor "
        "quant_tensor_k_quant_cpu quant_tensor_k_quant_cuda rtn_quantize"
    ),
    "quantization.operators": "",
    "quantization.operators.activation": "QDQRemovableActivation QLinearActivation",
    "quantization.operators.argmax": "QArgMax",
    "quantization.operators.attention": "AttentionQuant",
    "quantization.operators.base_operator": "QuantOperatorBase",
    "quantization.operators.binary_op": "QLinearBinaryOp",
    "quantization.operators.concat": "QLinearConcat",
    "quantization.operators.conv": "ConvInteger QDQConv QLinearConv",
    "quantization.operators.direct_q8": "Direct8BitOp QDQDirect8BitOp",
    "quantization.operators.embed_layernorm": "EmbedLayerNormalizationQuant",
    "quantization.operators.gather": "GatherQuant QDQGather",
    "quantization.operators.gavgpool": "QGlobalAveragePool",
    "quantization.operators.gemm": "QDQGemm QLinearGemm get_beta is_B_transposed set_default_beta",
    "quantization.operators.lstm": "LSTMQuant",
    "quantization.operators.matmul": "MatMulInteger QDQMatMul QLinearMatMul QOpMatMul",
    "quantization.operators.maxpool": "QDQMaxPool QMaxPool",
    "quantization.operators.norm": "QDQNormalization",
    "quantization.operators.pad": "QDQPad QPad",
    "quantization.operators.pooling": "QLinearPool",
    "quantization.operators.qdq_base_operator": "QDQOperatorBase",
    "quantization.operators.resize": "QDQResize QResize",
    "quantization.operators.softmax": "QLinearSoftmax",
    "quantization.operators.split": "QDQSplit QSplit",
    "quantization.operators.where": "QDQWhere QLinearWhere",
    "tools.check_onnx_model_mobile_usability": "check_usability",
    "tools.convert_onnx_models_to_ort": "OptimizationStyle convert_onnx_models_to_ort parse_args",
    "tools.file_utils": "files_from_file_or_dir path_match_suffix_ignore_case",
    "tools.fpa_intb_tune": "tune",
    "tools.logger": "get_logger",
    "tools.make_dynamic_shape_fixed": "make_dynamic_shape_fixed_helper",
    "tools.mobile_helpers": "",
    "tools.mobile_helpers.usability_checker": (
        "PartitioningInfo analyze_model check_coreml_partitions check_nnapi_partitions check_partitioning check_shapes checker "
        "parse_args run_analyze_model"
    ),
    "tools.offline_tuning": "Merger TuningResults embed extract parse_args",
    "tools.onnx_model_utils": (
        "ModelProtoWithShapeInfo fix_output_shapes get_opsets_imported get_optimization_level get_producer_consumer_maps "
        "is_fixed_size_tensor iterate_graph_per_graph_func iterate_graph_per_node_func make_dim_param_fixed "
        "make_input_shape_fixed optimize_model remove_invalid_dim_values update_onnx_opset"
    ),
    "tools.onnx_randomizer": "SIZE_THRESHOLD graph_iterator randomize_graph_initializer",
    "tools.onnxruntime_test": "float_dict generate_feeds integer_dict run_model",
    "tools.optimize_onnx_model": "optimize_model_helper",
    "tools.ort_format_model": (
        "GloballyAllowedTypesOpTypeImplFilter OpTypeImplFilterInterface OperatorTypeUsageManager OrtFormatModelProcessor "
        "create_config_from_models fbs_py_schema_dirname ort_fbs_py_parent_dir ort_root script_dir"
    ),
    "tools.ort_format_model.operator_type_usage_processors": (
        "DefaultTypeUsageProcessor GatherPackedProcessor GloballyAllowedTypesOpTypeImplFilter Input1TypedRegistrationProcessor "
        "OneHotProcessor OpTypeImplFilterInterface OperatorTypeUsageManager Output0TypedRegistrationProcessor "
        "TypeUsageProcessor"
    ),
    "tools.ort_format_model.ort_flatbuffers_py": "",
    "tools.ort_format_model.ort_flatbuffers_py.fbs": "",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.ArgType": "ArgType",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.ArgTypeAndIndex": "ArgTypeAndIndex",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.Attribute": "Attribute",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.AttributeType": "AttributeType",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.Checkpoint": "Checkpoint",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.DeprecatedKernelCreateInfos": "DeprecatedKernelCreateInfos",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.DeprecatedNodeIndexAndKernelDefHash": "DeprecatedNodeIndexAndKernelDefHash",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.DeprecatedSessionState": "DeprecatedSessionState",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.DeprecatedSubGraphSessionState": "DeprecatedSubGraphSessionState",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.Dimension": "Dimension",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.DimensionValue": "DimensionValue",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.DimensionValueType": "DimensionValueType",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.EdgeEnd": "EdgeEnd",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.FloatProperty": "FloatProperty",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.Graph": "Graph",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.InferenceSession": "InferenceSession",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.IntProperty": "IntProperty",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.KernelTypeStrArgsEntry": "KernelTypeStrArgsEntry",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.KernelTypeStrResolver": "KernelTypeStrResolver",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.MapType": "MapType",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.Model": "Model",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.ModuleState": "ModuleState",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.Node": "Node",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.NodeEdge": "NodeEdge",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.NodeType": "NodeType",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.NodesToOptimizeIndices": "NodesToOptimizeIndices",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.OpIdKernelTypeStrArgsEntry": "OpIdKernelTypeStrArgsEntry",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.OperatorSetId": "OperatorSetId",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.OptimizerGroup": "OptimizerGroup",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.ParameterOptimizerState": "ParameterOptimizerState",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.PropertyBag": "PropertyBag",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.RuntimeOptimizationRecord": "RuntimeOptimizationRecord",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.RuntimeOptimizationRecordContainerEntry": "RuntimeOptimizationRecordContainerEntry",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.RuntimeOptimizations": "RuntimeOptimizations",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.SequenceType": "SequenceType",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.Shape": "Shape",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.SparseTensor": "SparseTensor",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.StringProperty": "StringProperty",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.StringStringEntry": "StringStringEntry",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.Tensor": "Tensor",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.TensorDataType": "TensorDataType",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.TensorTypeAndShape": "TensorTypeAndShape",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.TypeInfo": "TypeInfo",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.TypeInfoValue": "TypeInfoValue",
    "tools.ort_format_model.ort_flatbuffers_py.fbs.ValueInfo": "ValueInfo",
    "tools.ort_format_model.ort_model_processor": "OrtFormatModelProcessor",
    "tools.ort_format_model.types": "FbsTypeInfo get_typeinfo value_name_to_typestr",
    "tools.ort_format_model.utils": "create_config_from_models log",
    "tools.pytorch_export_contrib_ops": "register unregister",
    "tools.pytorch_export_helpers": "infer_input_info",
    "tools.qdq_helpers": "",
    "tools.qdq_helpers.optimize_qdq_model": "optimize_qdq_model",
    "tools.qnn": "",
    "tools.qnn.add_trans_cast": (
        "QnnTensorStruct compare_onnx_shape_with_qnn_shape gen_to_channel_first_perm gen_to_channel_last_perm "
        "graph_topological_sort parse_qnn_json_file qnn_data_type_to_onnx_data_type"
    ),
    "tools.qnn.gen_qnn_ctx_onnx_model": (
        "QnnTensorStruct generate_wrapper_onnx_file is_quantized_data_type parse_qnn_converter_json_file parse_qnn_graph "
        "qnn_data_type_to_onnx_data_type"
    ),
    "tools.qnn.preprocess": "qnn_preprocess_model",
    "tools.reduced_build_config_parser": "have_flatbuffers parse_config",
    "tools.remove_initializer_from_input": "get_args model remove_initializer_from_input",
    "tools.symbolic_shape_infer": (
        "SymbolicShapeInference as_list as_scalar get_attribute get_dim_from_proto get_elem_type_from_type_proto get_opset "
        "get_shape_from_sympy_shape get_shape_from_type_proto get_shape_from_value_info handle_negative_axis is_literal "
        "is_sequence make_named_value_info out_mp parse_arguments sympy_reduce_product"
    ),
    "tools.update_onnx_opset": "update_onnx_opset_helper",
    "transformers.affinity_helper": "AffinitySetting affi_helper",
    "transformers.benchmark": "cpu_count os parse_arguments run_onnxruntime run_pytorch run_tensorflow run_with_tf_optimizations",
    "transformers.benchmark_helper": (
        "ConfigModifier CudaMemoryMonitor IO_BINDING_DATA_TYPE_MAP MemoryMonitor OptimizerInfo Precision RocmMemoryMonitor "
        "allocateOutputBuffers create_onnxruntime_session get_gpu_info get_latency_result get_ort_environment_variables "
        "inference_ort inference_ort_with_io_binding measure_memory output_details output_fusion_statistics output_summary "
        "prepare_environment set_random_seed setup_logger"
    ),
    "transformers.bert_perf_test": (
        "ModelSetting TestSetting create_input_output_tensors create_io_binding create_session launch_test numpy_type "
        "onnxruntime_inference onnxruntime_inference_with_io_binding parse_arguments run_one_test run_perf_tests "
        "run_performance to_string"
    ),
    "transformers.bert_test_data": (
        "create_and_save_test_data fake_input_ids_data fake_input_mask_data fake_segment_ids_data fake_test_data "
        "find_bert_inputs generate_test_data get_bert_inputs get_graph_input_from_embed_node get_random_length output_test_data "
        "parse_arguments"
    ),
    "transformers.compare_bert_results": "compare parse_arguments run_model run_test",
    "transformers.constants": "AttentionInputIDs AttentionOutputIDs MultiHeadAttentionInputIDs MultiHeadAttentionOutputIDs Operators",
    "transformers.convert_generation": (
        "GenerationType add_cache_indirection_to_mha add_output_qk_to_mha convert_generation_model create_attention_mask "
        "create_ort_session find_past_seq_len_usage fix_past_sequence_length generate_gpt2_init_decoder get_shared_initializers "
        "gpt2_to_onnx kwargs_of make_dim_proto_numeric_t5 move_initializers pack_qkv_for_decoder_masked_mha "
        "pad_weights_of_logits_matmul parse_arguments remove_shared_initializers replace_mha_with_dmmha replace_mha_with_gqa "
        "shape_inference shape_of t5_to_onnx test_gpt_model test_t5_model test_torch_performance "
        "update_decoder_subgraph_output_cross_attention update_decoder_subgraph_past_present_share_buffer "
        "update_decoder_subgraph_share_buffer_and_use_decoder_masked_mha update_decoder_subgraph_use_decoder_masked_attention "
        "update_input_shapes_for_gpt2_decoder_model verify_gpt2_subgraph verify_t5_decoder_subgraph "
        "verify_t5_encoder_decoder_init_subgraph"
    ),
    "transformers.convert_tf_models_to_pytorch": (
        "TFMODELS convert_tf_checkpoint_to_pytorch download_compressed_file download_tf_checkpoint get_ckpt_prefix_path "
        "init_pytorch_model safe_extract_archive tf2pt_pipeline tf2pt_pipeline_test"
    ),
    "transformers.convert_to_packing_mode": "PackingAttention PackingAttentionBase PackingMode PackingMultiHeadAttention",
    "transformers.dynamo_onnx_helper": "DynamoOnnxHelper",
    "transformers.fusion_attention": "AttentionMask FusionAttention",
    "transformers.fusion_attention_clip": "FusionAttentionClip",
    "transformers.fusion_attention_sam2": "FusionMultiHeadAttentionSam2",
    "transformers.fusion_attention_unet": "FusionAttentionUnet",
    "transformers.fusion_attention_vae": "FusionAttentionVae",
    "transformers.fusion_bart_attention": "FusionBartAttention",
    "transformers.fusion_base": "Fusion",
    "transformers.fusion_bias_add": "FusionBiasAdd",
    "transformers.fusion_biasgelu": "FusionBiasGelu",
    "transformers.fusion_biassplitgelu": "FusionBiasSplitGelu",
    "transformers.fusion_conformer_attention": "FusionConformerAttention",
    "transformers.fusion_constant_fold": "FusionConstantFold",
    "transformers.fusion_embedlayer": "FusionEmbedLayerNoMask FusionEmbedLayerNormalization",
    "transformers.fusion_fastgelu": "FusionFastGelu",
    "transformers.fusion_gelu": "FusionGelu",
    "transformers.fusion_gelu_approximation": "FusionGeluApproximation",
    "transformers.fusion_gemmfastgelu": "FusionGemmFastGelu",
    "transformers.fusion_gpt_attention": "FusionGptAttention FusionGptAttentionPastBase",
    "transformers.fusion_gpt_attention_megatron": "FusionGptAttentionMegatron is_close",
    "transformers.fusion_gpt_attention_no_past": "FusionGptAttentionNoPast",
    "transformers.fusion_group_norm": "FusionGroupNorm",
    "transformers.fusion_layernorm": "FusionLayerNormalization FusionLayerNormalizationNCHW FusionLayerNormalizationTF",
    "transformers.fusion_mha_dit": "FusionMultiHeadAttentionDiT",
    "transformers.fusion_mha_mmdit": "FusionMultiHeadAttentionMMDit",
    "transformers.fusion_nhwc_conv": "FusionNhwcConv",
    "transformers.fusion_qordered_attention": "FusionQOrderedAttention",
    "transformers.fusion_qordered_gelu": "FusionQOrderedGelu",
    "transformers.fusion_qordered_layernorm": "FusionQOrderedLayerNormalization",
    "transformers.fusion_qordered_matmul": "FusionQOrderedMatMul",
    "transformers.fusion_quickgelu": "FusionQuickGelu",
    "transformers.fusion_reshape": "FusionReshape",
    "transformers.fusion_rotary_attention": "FusionRotaryAttention FusionRotaryEmbeddings",
    "transformers.fusion_shape": "FusionShape",
    "transformers.fusion_simplified_layernorm": "FusionSimplifiedLayerNormalization FusionSkipSimplifiedLayerNormalization",
    "transformers.fusion_skip_group_norm": "FusionSkipGroupNorm",
    "transformers.fusion_skiplayernorm": "FusionBiasSkipLayerNormalization FusionSkipLayerNormalization",
    "transformers.fusion_transpose": "FusionInsertTranspose FusionTranspose",
    "transformers.fusion_utils": "FusionUtils NumpyHelper",
    "transformers.huggingface_models": "MODELS MODEL_CLASSES",
    "transformers.import_utils": "is_installed",
    "transformers.large_model_exporter": (
        "adapt_inputs_to_device auto_pipeline_parallel disable_huggingface_init do_export_internal export_onnx "
        "fetch_onnx_inputs_outputs_name get_model_parameter_size initialize_model_and_sample_inputs move_to_appropriate_device "
        "parse_arguments retrieve_onnx_inputs"
    ),
    "transformers.machine_info": "MachineInfo get_device_info get_machine_info parse_arguments",
    "transformers.metrics": "BackendOptions BaseObject BenchmarkRecord Config Metadata Metrics ModelInfo",
    "transformers.models": "",
    "transformers.models.bart": "transformers_dir",
    "transformers.models.bart.export": "isExist print_args user_command",
    "transformers.models.bert": "transformers_dir",
    "transformers.models.bert.eval_squad": "PRETRAINED_SQUAD_MODELS get_package_version load_onnx_model output_details output_summary parse_arguments",
    "transformers.models.gpt2": "transformers_dir",
    "transformers.models.gpt2.benchmark_gpt2": "parse_arguments",
    "transformers.models.gpt2.convert_to_onnx": "get_latency_name get_onnx_model_size parse_arguments",
    "transformers.models.gpt2.gpt2_helper": (
        "DEFAULT_TOLERANCE GPT2ModelNoPastState Gpt2Helper Gpt2Inputs MODEL_CLASSES MyGPT2LMHeadModel "
        "MyGPT2LMHeadModel_NoPadding MyGPT2Model PRETRAINED_GPT2_MODELS TFGPT2ModelNoPastState"
    ),
    "transformers.models.gpt2.gpt2_parity": (
        "ParityTask get_baselines get_last_matmul_node_name get_latency get_mixed_precision_parameters load_results_from_csv "
        "parse_arguments print_wins rows run_candidate run_parity run_significance_test run_tuning_step0 run_tuning_step1 "
        "run_tuning_step2 score summary_csv task"
    ),
    "transformers.models.gpt2.gpt2_tester": "Gpt2Metric Gpt2Tester",
    "transformers.models.gpt2.parity_check_helper": (
        "NON_ZERO_VALUE ZERO_VALUE batch_size dummy_inputs_fp16 dummy_inputs_fp32 environ_reset environ_setting_nodes "
        "environ_setting_paths generate_outputs_files inference outputs_path_fp16_gpu outputs_path_fp32_gpu "
        "past_sequence_length post_processing sequence_length"
    ),
    "transformers.models.llama": "transformers_dir",
    "transformers.models.llama.benchmark": (
        "get_args get_inputs get_model get_ort_model_inputs_len measure_fn profile_fn run_hf_inference run_inference "
        "run_ort_inference time_fn"
    ),
    "transformers.models.llama.benchmark_all": "benchmark get_args process_log_file save_results",
    "transformers.models.llama.benchmark_e2e": "clear_cache get_args get_model prepare_model_for_inference run_inference save_results",
    "transformers.models.llama.convert_to_onnx": (
        "convert_to_float16 get_args get_merged_model_dynamic_axes get_model_dynamic_axes get_model_with_past_kv_dynamic_axes "
        "optimize_export optimize_optimum remove_existing_files remove_existing_model run_dynamo_export "
        "run_torchscript_merged_export run_torchscript_separate_export save_onnx_model smooth_quant "
        "torch_export_onnx_opset_version use_group_query_attention"
    ),
    "transformers.models.llama.dist_settings": "barrier get_rank get_size init_dist print_out",
    "transformers.models.llama.llama_inputs": (
        "add_io_bindings_as_ortvalues add_io_bindings_as_tensors convert_inputs_for_ort enable_past_present_share_buffer "
        "flatten_past_kv_inputs get_initial_inputs_and_outputs get_merged_sample_with_past_kv_inputs get_msft_sample_inputs "
        "get_past_kv_inputs get_position_ids get_sample_inputs get_sample_with_past_kv_inputs verify_ort_inputs"
    ),
    "transformers.models.llama.llama_parity": "get_args get_inputs get_sequence_lengths seed torch_deepcopy verify_parity",
    "transformers.models.llama.llama_torch": "setup_torch_model",
    "transformers.models.llama.quant_kv_dataloader": "QuantKVDataLoader",
    "transformers.models.longformer": "transformers_dir",
    "transformers.models.longformer.benchmark_longformer": (
        "find_onnx_model launch_test load_torch_model output_details output_summary parse_arguments run run_experiments "
        "run_tests test_latency test_memory test_ort test_ort_latency test_ort_memory test_parity test_torch test_torch_latency"
    ),
    "transformers.models.longformer.convert_to_onnx": (
        "export_longformer get_dummy_inputs my_longformer_attention my_longformer_self_attention_forward_4 "
        "my_longformer_self_attention_forward_4_3 my_longformer_self_attention_forward_4_3_2 optimize_longformer "
        "parse_arguments weight_bias_format"
    ),
    "transformers.models.longformer.generate_test_data": (
        "create_longformer_test_data fake_global_mask_data fake_test_data generate_test_data get_longformer_inputs "
        "parse_arguments"
    ),
    "transformers.models.longformer.longformer_helper": "LongformerHelper LongformerInputs PRETRAINED_LONGFORMER_MODELS",
    "transformers.models.phi2": "transformers_dir",
    "transformers.models.phi2.convert_to_onnx": "ConvertPhi2ToONNX parse_arguments",
    "transformers.models.phi2.inference_example": "ORTGenerator cuda_memcpy pt_to_np run_phi2",
    "transformers.models.sam2": "transformers_dir",
    "transformers.models.sam2.benchmark_sam2": "OrtTestSession TestConfig create_ort_session create_session measure_latency run_perf_test run_test run_torch",
    "transformers.models.sam2.convert_to_onnx": "optimize_sam2_model parse_arguments",
    "transformers.models.sam2.image_decoder": "SAM2ImageDecoder export_decoder_onnx test_decoder_onnx",
    "transformers.models.sam2.image_encoder": "SAM2ImageEncoder export_image_encoder_onnx test_image_encoder_onnx",
    "transformers.models.sam2.mask_decoder": "SAM2MaskDecoder export_mask_decoder_onnx test_mask_decoder_onnx",
    "transformers.models.sam2.nvtx_helper": "NvtxHelper",
    "transformers.models.sam2.prompt_encoder": "SAM2PromptEncoder export_prompt_encoder_onnx test_prompt_encoder_onnx",
    "transformers.models.sam2.sam2_demo": "get_predictor run_demo show_all_images show_box show_mask show_masks show_points",
    "transformers.models.sam2.sam2_image_onnx_predictor": "SAM2ImageOnnxPredictor create_ort_session create_session",
    "transformers.models.sam2.sam2_utils": (
        "compare_tensors_with_tolerance decoder_shape_dict encoder_shape_dict load_sam2_model random_sam2_input_image "
        "sam2_onnx_path setup_logger"
    ),
    "transformers.models.stable_diffusion": "transformers_dir",
    "transformers.models.stable_diffusion.benchmark": (
        "PROVIDERS SD_MODELS example_prompts get_image_filename_prefix get_negative_prompt_kwargs get_optimum_ort_pipeline "
        "get_ort_pipeline get_torch_pipeline measure_gpu_memory parse_arguments print_loaded_libraries run_optimum_ort "
        "run_optimum_ort_pipeline run_ort run_ort_pipeline run_ort_trt_static run_ort_trt_xl run_tensorrt_static "
        "run_tensorrt_static_xl run_torch run_torch_pipeline warmup_prompts"
    ),
    "transformers.models.stable_diffusion.benchmark_controlnet": (
        "arguments compile_stable_fast compile_torch get_canny_image get_prompt load_ort_cuda_pipeline load_pipeline test "
        "test_ort_cuda"
    ),
    "transformers.models.stable_diffusion.demo_txt2img": "parser s",
    "transformers.models.stable_diffusion.demo_txt2img_xl": "parser run_demo run_dynamic_shape_demo run_pipelines run_turbo_demo s",
    "transformers.models.stable_diffusion.demo_utils": (
        "RawTextArgumentDefaultsHelpFormatter add_controlnet_arguments arg_parser get_canny_image get_depth_image get_metadata "
        "initialize_pipeline load_pipelines max_batch parse_arguments process_controlnet_arguments process_controlnet_image "
        "process_controlnet_images_xl repeat_prompt set_default_arguments"
    ),
    "transformers.models.stable_diffusion.diffusion_models": (
        "BaseModel CLIP CLIPWithProj PipelineInfo TorchVAEEncoder TrtOptimizer UNet UNet2DConditionControlNetModel "
        "UNet2DConditionXLControlNetModel UNetXL VAE VAEEncoder get_tokenizer"
    ),
    "transformers.models.stable_diffusion.diffusion_schedulers": "DDIMScheduler EulerAncestralDiscreteScheduler LCMScheduler UniPCMultistepScheduler",
    "transformers.models.stable_diffusion.engine_builder": "EngineBuilder EngineType get_engine_paths get_engine_type",
    "transformers.models.stable_diffusion.engine_builder_ort_cuda": "OrtCudaEngine OrtCudaEngineBuilder",
    "transformers.models.stable_diffusion.engine_builder_ort_trt": "OrtTensorrtEngine OrtTensorrtEngineBuilder",
    "transformers.models.stable_diffusion.engine_builder_tensorrt": "TensorrtEngine TensorrtEngineBuilder numpy_to_torch_dtype_dict",
    "transformers.models.stable_diffusion.engine_builder_torch": "TorchEngineBuilder",
    "transformers.models.stable_diffusion.optimize_pipeline": "has_external_data is_flux is_sd_3 is_sdxl optimize_stable_diffusion_pipeline parse_arguments",
    "transformers.models.stable_diffusion.ort_optimizer": "OrtStableDiffusionOptimizer",
    "transformers.models.stable_diffusion.pipeline_stable_diffusion": "StableDiffusionPipeline",
    "transformers.models.stable_diffusion.trt_utilities": "TRT_LOGGER init_trt_plugins",
    "transformers.models.t5": "transformers_dir",
    "transformers.models.t5.convert_to_onnx": "export_onnx_models parse_arguments",
    "transformers.models.t5.t5_decoder": "T5Decoder T5DecoderHelper T5DecoderInit T5DecoderInputs",
    "transformers.models.t5.t5_encoder": "T5Encoder T5EncoderInputs",
    "transformers.models.t5.t5_encoder_decoder_init": "T5EncoderDecoderInit T5EncoderDecoderInitHelper T5EncoderDecoderInitInputs",
    "transformers.models.t5.t5_helper": "PRETRAINED_MT5_MODELS PRETRAINED_T5_MODELS T5Helper",
    "transformers.models.whisper": "transformers_dir",
    "transformers.models.whisper.benchmark": "get_inputs get_model measure_fn parse_args profile_fn run_hf_inference run_inference run_ort_inference time_fn",
    "transformers.models.whisper.benchmark_all": "benchmark get_args process_log_file save_results",
    "transformers.models.whisper.convert_to_onnx": "PROVIDERS export_onnx_models get_sensitive_node_names make_quant_algo_config parse_arguments",
    "transformers.models.whisper.whisper_chain": "chain_model clean_list verify_inputs",
    "transformers.models.whisper.whisper_decoder": "WhisperDecoder",
    "transformers.models.whisper.whisper_encoder": "WhisperEncoder",
    "transformers.models.whisper.whisper_encoder_decoder_init": "WhisperEncoderDecoderInit",
    "transformers.models.whisper.whisper_helper": "PRETRAINED_WHISPER_MODELS WhisperHelper",
    "transformers.models.whisper.whisper_inputs": (
        "convert_inputs_for_ort flatten_past_key_values get_model_dynamic_axes get_sample_QKs get_sample_alignment_heads "
        "get_sample_audio_features get_sample_decoder_input_ids get_sample_decoder_inputs "
        "get_sample_encoder_decoder_init_inputs get_sample_encoder_hidden_states get_sample_encoder_inputs "
        "get_sample_jump_times_inputs get_sample_past_key_values get_sample_segment_length get_sample_sot_sequence_length "
        "group_past_key_values"
    ),
    "transformers.models.whisper.whisper_jump_times": "WhisperJumpTimes batch_jump_times index_QKs jump_timings padded_jump_from_dtw",
    "transformers.onnx_exporter": (
        "add_filename_suffix build_dynamic_axes create_onnxruntime_input export_onnx_model_from_pt export_onnx_model_from_tf "
        "filter_inputs flatten get_onnx_file_path load_pretrained_model load_pt_model load_pt_model_from_tf load_tf_model "
        "modelclass_dispatcher optimize_onnx_model optimize_onnx_model_by_ort os replace_torch_functions "
        "restore_torch_functions torch_func triu_onnx update_flatten_list validate_and_optimize_onnx validate_onnx_model"
    ),
    "transformers.onnx_model": "OnnxModel",
    "transformers.onnx_model_bart": "BartOnnxModel FusionBartReshape",
    "transformers.onnx_model_bert": "BertOnnxModel",
    "transformers.onnx_model_bert_keras": "BertOnnxModelKeras",
    "transformers.onnx_model_bert_tf": "BertOnnxModelTF",
    "transformers.onnx_model_clip": "ClipOnnxModel",
    "transformers.onnx_model_conformer": "ConformerOnnxModel",
    "transformers.onnx_model_gpt2": "Gpt2OnnxModel",
    "transformers.onnx_model_mmdit": "MmditOnnxModel",
    "transformers.onnx_model_phi": (
        "Fission FissionTransformerBlockPhi FissionTransformerCausalLMHeadPhi FissionTransformerEmbeddingPhi "
        "FissionTransformerLayerNormPhi Phi2PreProcessor PhiOnnxModel ProcessBiasKFunc ProcessBiasQFunc ProcessBiasVFunc "
        "ProcessGemmWFunc ProcessMatMulKFunc ProcessMatMulQFunc ProcessMatMulVFunc ProcessRotCacheFunc"
    ),
    "transformers.onnx_model_sam2": "Sam2OnnxModel",
    "transformers.onnx_model_t5": "FusionRelativePositionBiasBlock FusionT5Attention T5OnnxModel",
    "transformers.onnx_model_tnlr": "FusionTnlrAttention TnlrOnnxModel",
    "transformers.onnx_model_unet": "UnetOnnxModel",
    "transformers.onnx_model_vae": "VaeOnnxModel",
    "transformers.onnx_utils": "extract_raw_data_from_model has_external_data",
    "transformers.optimizer": "MODEL_TYPES get_fusion_statistics optimize_by_fusion optimize_by_onnxruntime optimize_model",
    "transformers.past_helper": "PastKeyValuesHelper",
    "transformers.profile_result_processor": (
        "arguments group_node_results load_profile_json parse_arguments parse_kernel_results parse_node_results process_results "
        "profile_file results"
    ),
    "transformers.profiler": (
        "arguments create_bert_inputs create_dummy_inputs create_gpt2_inputs create_longformer_inputs get_dim_from_type_proto "
        "get_shape_from_type_proto parse_arguments profile_file results run run_profile"
    ),
    "transformers.quantize_helper": "QuantizeHelper conv1d_to_linear",
    "transformers.shape_infer_helper": "SymbolicShapeInferenceHelper file_path",
    "transformers.shape_optimizer": "BertOnnxModelShapeOptimizer CONSTANT_SHAPE_NAME_PREFIX RESHAPE_INPUT_SHAPE_PREFIX parse_arguments setup_logging",
    "transformers.torch_onnx_export_helper": "TrainingMode torch_onnx_export",
}
