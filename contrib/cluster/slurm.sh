#!/bin/sh
# A sweep as a job array of SLURM: sbatch --array=1-100 contrib/cluster/slurm.sh STUDY.toml STORE
# The store is on a file system that all nodes see. Submitted again, with the same range, it computes only
# what is missing.
#SBATCH --job-name=slowstart
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
#SBATCH --requeue
exec slowstart --jobs "${SLURM_CPUS_PER_TASK:-1}" sweep "$1" --out "$2" --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_MAX"
