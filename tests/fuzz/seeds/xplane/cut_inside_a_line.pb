
=/device:GPU:0	Stream #7d"	êN†ú""gemm_a
9/device:GPU:1	Stream #7d"	êN∞Í"gemm_b