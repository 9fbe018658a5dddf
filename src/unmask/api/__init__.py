"""The verbs of the library: prepare, pretrain, finetune, evaluate. The commands call these functions."""
