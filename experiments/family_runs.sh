#!/usr/bin/env bash
# The runs of docs/results/family-results.md on one GPU; each line goes on where it was if it is started again.
#
#   experiments/family_runs.sh tokens  DATA SUITE OUT [ernie:text]     eight members, 20 M tokens each, two seeds
#   experiments/family_runs.sh minutes DATA SUITE OUT [ernie:text]     eight members, half a minute each, one after another;
#                                                                the card must have nothing else to do meanwhile
#   experiments/family_runs.sh claims  DATA TASKS OUT                  what papers claimed, seven times
#
# DATA is a prepared corpus (prepare --for ernie --vocabulary wordpiece; then unmask similar-words), SUITE a folder of NAME.train.*
# and NAME.dev.* files, TASKS a folder with such files of cmrc2018, msra_ner, lcqmc and thucnews. ernie needs
# conversations (prepare --dialogues); ernie:text does without. Small runs share the card: see bench/README.md about MPS.
set -euo pipefail

what=$1 data=$2 tasks=$3 out=$4 ernie=${5:-ernie}
at_once=${AT_ONCE:-15}
members=(bert roberta albert wwm "$ernie" spanbert macbert electra)
# ELECTRA's own small has another shape; all are compared in one.
shape=()
for value in depth=4 width=512 heads=8 ffn_width=2048 embedding_width=0; do shape+=(--set "electra:network.$value"); done
common=(--size small --preset short --set 'stages.*.max_length=128' "${shape[@]}" --data "$data" --suite "$tasks" --epochs 2
  --finetune-lr 2e-4 --max-finetunes "$at_once" --out "$out")
tune=(--finetune-args "--epochs 3 --lr 2e-4" --jobs "$at_once" --data "$data" --out "$out")

task() { # NAME [more words]
  local found=("$tasks/$1".train.*) judged=("$tasks/$1".dev.*)
  echo "$1=${found[0]}:${judged[0]}${2:+:$2}"
}

case $what in
  tokens) python -m unmask compare "${members[@]}" "${common[@]}" --batch-size 64 --tokens 20000000 --seeds 2 --max-pretrainings 16 ;;
  minutes) python -m unmask compare "${members[@]}" "${common[@]}" --batch-size 256 --hours "${HOURS:-0.0083}" --seeds 1 ;;
  claims)
    claim() { python -m unmask claim "$1" "${tune[@]}" "${@:2}"; }
    claim sop
    claim masking
    claim sharing --task "$(task lcqmc)" --finetune-args "--epochs 2 --lr 2e-4 --max-length 96"
    claim all-tokens --task "$(task lcqmc)" --task "$(task thucnews)"
    claim spans --task "$(task cmrc2018 '--epochs 2')" --task "$(task msra_ner)"
    claim formats --task "$(task lcqmc)"
    claim replacement --task "$(task thucnews)"
    ;;
  *) echo "family_runs.sh: tokens, minutes or claims; found $what" >&2; exit 2 ;;
esac
