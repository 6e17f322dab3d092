"""What settings are called in Stable-Baselines3, CleanRL, ManiSkill, Habitat and LeRobot, and what they are here."""

from __future__ import annotations

from collections.abc import Collection

# What is meant -> last parts of names that people type for it. `key` or `key=value`; a command counts only those that
# it has, so that one word may stand in several lines. What begins with "rearrange" is another command.
CALLED = {
    "steps": "total_timesteps total_steps num_timesteps total_env_steps total_num_steps num_env_steps timesteps "
             "num_updates max_iterations max_steps training_steps",
    "skill": "task task_id task_name env env_id env_name environment gym_id",
    "hab": "scenario plan",
    "trainer=ver": "algo algorithm algo_name rl_algo",
    "device=cuda": "gpu gpus gpu_id cuda use_cuda use_gpu torch_gpu_id accelerator num_gpus sim_backend",
    "logger=wandb": "wandb use_wandb track report_to with_wandb log_wandb wandb_project wandb_project_name",
    "rearrange view": "render render_mode gui headless viewer display show visualize",
    "video=3": "capture_video save_video save_videos record_video video_option videos",
    "eval_film": "capture_video save_video save_videos record_video video_option",
    "checkpoint": "ckpt ckpt_path model model_path load load_model load_path policy_path pretrained_path resume_from "
                  "from_checkpoint load_checkpoint load_run weights pretrained eval_ckpt_path path",
    "trainer.num_envs": "num_processes num_environments nenvs n_env envs num_actors",
    "workers": "num_workers n_envs num_envs num_processes num_environments num_eval_envs",
    "trainer.rollout_steps": "n_steps num_steps rollout_length horizon num_rollout_steps",
    "ppo.learning_rate": "lr learning_rate actor_lr policy_lr optimizer_lr",
    "ppo.discount": "gamma discount_factor",
    "ppo.gae_lambda": "tau lam lambda gae_tau",
    "ppo.clip": "clip_range clip_coef clip_param clip_epsilon",
    "ppo.epochs": "n_epochs update_epochs ppo_epoch ppo_epochs num_epochs",
    "ppo.mini_batches": "num_mini_batch num_minibatches n_minibatches batch_size minibatch_size",
    "ppo.schedule": "anneal_lr use_linear_lr_decay lr_schedule",
    "name": "run_name exp_name experiment_name job_name run_id",
    "output": "output_dir log_dir logdir save_dir out_dir tensorboard_dir tensorboard_log checkpoint_folder",
    "checkpoint_every_s": "save_freq save_every save_interval checkpoint_interval checkpoint_freq num_checkpoints",
    "eval_every": "eval_freq eval_interval eval_steps",
    "eval_episodes": "num_eval_episodes n_eval_episodes num_episodes n_episodes eval_n_episodes test_episode_count",
    "episodes": "num_eval_episodes n_eval_episodes num_episodes n_episodes test_episode_count num_traj num_trajs",
    "seed": "random_seed rng_seed",
    "sim.observations": "obs_mode obs observation_mode sensors",
    "skill.action_parts": "control_mode action_space action_type",
    "demos": "dataset dataset_path demo_path repo_id root data_path",
    "sim.scene_dataset": "dataset scene_dataset_path scene scenes",
    "out": "repo_id root dataset_path traj_dir",
    "policy": "network net arch policy_type",
    "deterministic": "torch_deterministic",
}


def meant(name: str, known: Collection[str]) -> str | None:
    """What is called so in other programs, among the settings and groups that a command has."""
    last = name.lower().replace("-", "_").rpartition(".")[2]
    parts = {last, *(name.lower().split(".")[:1] if last in ("enable", "enabled", "mode") else ())}  # wandb.enable
    for here, others in CALLED.items():
        if parts & set(others.split()) and (here.startswith("rearrange ") or here.partition("=")[0] in known):
            return here
    return None
