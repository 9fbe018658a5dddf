#!/usr/bin/env bash
# Speed on one GPU, in this order: are the kernels right, which tiles are fastest, how long is a step, where does its time
# go. Start it in the root of the repository.
#
#   bench/speed/speed_runs.sh right|tiles|where|step|members|small|behind|thread|growth|documents|first|quality DATA OUT [DATA ...]
#
# DATA is a prepared corpus; `documents` takes further ones in the same run.
# WORKERS=8 spreads `right` over processes (pytest-xdist): most of its time goes into compiling some hundred kernels.
# DROPOUT=0 measures a `step` and `documents` without dropout alone, on both sides, 0.1 with it alone; otherwise both.
# PLACES=65536 gives a `step` half as many places as it has otherwise, which serves theirs better with dropout.
set -euo pipefail

what=$1 data=$2 out=$3
more=("${@:4}")
mkdir -p "$out"
base=(--vocabulary 30522 --sizes base --data "$data")
places=${PLACES:-131072}
full=(--lengths 512 --rows $((places / 512)))
short=(--lengths 128 --rows $((places / 128)))

electra() { # small, with many tokens in a step and with few
  for tokens in 65536 16384; do
    python -m bench.speed.pretrain_gpu --members electra --data "$data" --sizes small --lengths 128 --tokens $tokens --graphs --no-compile \
      --steps 1000 "$@" --out "$out/electra-$tokens$*.json" | tee "$out/electra-$tokens$*.txt"
  done
}

case $what in
  right) python -m pytest -q -p no:cacheprovider ${WORKERS:+-p no:benchmark -n "$WORKERS"} tests/unit/nets tests/unit/train \
    tests/laws -k "cuda or gpu or kernel or tiles or halves or carry or draws" ;;
  tiles)
    python -m bench.kernels.attention | tee "$out/attention.txt"
    python -m bench.kernels.attention --sweep --lengths 128,512 --dropout 0 | tee "$out/sweep-none.txt"
    python -m bench.kernels.attention --sweep --lengths 128,512 | tee "$out/sweep.txt"
    python -m bench.kernels.kernel_times | tee "$out/kernels.txt"
    python -m bench.kernels.kernel_times --dropout 0 | tee "$out/kernels-none.txt"
    ;;
  where)
    for rows in full short; do
      declare -n chosen=$rows
      python -m bench.speed.pretrain_gpu "${base[@]}" "${chosen[@]}" --no-theirs --profile --dropout 0 --steps 20 | tee "$out/where-$rows.txt"
    done
    python -m bench.speed.pretrain_gpu --members electra --data "$data" --sizes small --lengths 128 --tokens 65536 --graphs --no-compile \
      --profile | tee "$out/where-electra.txt"
    ;;
  step) # and what the card's clock did meanwhile, second by second
    nvidia-smi --query-gpu=timestamp,clocks.sm,power.draw,power.limit --format=csv -l 1 > "$out/clock.txt" &
    watch=$!
    trap 'kill $watch' EXIT
    for rows in full short; do
      declare -n chosen=$rows
      python -m bench.speed.pretrain_gpu "${base[@]}" "${chosen[@]}" --graphs --steps 20 ${DROPOUT:+--dropout "$DROPOUT"} \
        --out "$out/step-$places-$rows${DROPOUT-}.json" | tee "$out/step-$places-$rows${DROPOUT-}.txt"
    done
    ;;
  members)
    python -m bench.speed.pretrain_gpu --members --data "$data" --sizes base --lengths 128 --tokens 65536 --graphs --no-compile \
      --steps 20 --out "$out/members.json" | tee "$out/members.txt"
    ;;
  small) electra ;;
  behind) electra --no-aside ;; # its generator goes back behind the trunk, not beside it
  thread) electra --no-loader-process ;; # its lessons are made by a thread, not by a process of their own
  growth) # the same text again and again: what a step takes, where a network is so small that the loader counts;
    # so many steps that a shape which comes once in hundreds, and is then recorded, does not count
    python -m bench.speed.pretrain_gpu --members electra --data "$data" --sizes small --lengths 128 512 --tokens 16384 --graphs --no-compile \
      --steps 1000 --grow 1 10 100 --out "$out/growth.json" | tee "$out/growth.txt"
    ;;
  documents) # the same network for all languages
    python -m bench.speed.documents --data "$data" ${more[@]+"${more[@]}"} --size base --vocabulary 30522 ${DROPOUT:+--dropout "$DROPOUT"} \
      --out "$out/documents${DROPOUT-}.json" | tee "$out/documents${DROPOUT-}.txt"
    ;;
  quality)
    # RATES: those that theirs tries, if not the usual three; OURS: our minutes, if not two; MASK: ones or none, if the
    # faster one is known
    python -m bench.speed.quality --data "$data" --size base --trials 10 --their-loaders 8 --try-minutes 0.75 ${RATES:+--their-rates $RATES} \
      ${OURS:+--our-minutes $OURS} ${MASK:+--their-mask $MASK} \
      --out "$out/quality" | tee "$out/quality.txt"
    ;;
  first) python -m bench.speed.first_step --data "$data" | tee "$out/first.txt" ;;
  *) echo "speed_runs.sh: right, tiles, where, step, members, small, behind, thread, growth, documents, first or quality; found $what" >&2; exit 2 ;;
esac
echo "speed_runs.sh: $what took $SECONDS s"
