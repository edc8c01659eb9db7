"""Where the runs of a grid or a search are computed: processes here, a Ray cluster, or Slurm.

pool       hand tasks to runners, a few at a time; one that dies is tried again
engines    the names of ``--engine``, and what each one needs
local      a process on this machine
worker     what runs in that process
ray_jobs   the same process, started by Ray on any node of a cluster
slurm      one Slurm job per task, through submitit
once       what runs in that job
place      whether another computer sees the same folders
"""
