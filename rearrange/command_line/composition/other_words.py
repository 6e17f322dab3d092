"""What settings are called in Stable-Baselines3, CleanRL, ManiSkill, Habitat and LeRobot, and what they are here."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

# What is meant -> last parts of names that people type for it. `key` or `key=value`; a command counts only those that
# it has, so that one word may stand in several lines. What begins with "rearrange" is another command.
CALLED = {
    "steps": "total_timesteps total_steps num_timesteps total_env_steps total_num_steps num_env_steps timesteps "
             "num_updates max_iterations max_steps training_steps",
    "skill": "env.type task task_id task_name env env_id env_name environment gym_id",
    "hab": "scenario plan",
    "trainer=ver": "algo algorithm algo_name rl_algo",
    "device=cuda": "gpu gpus gpu_id cuda use_cuda use_gpu torch_gpu_id accelerator num_gpus sim_backend",
    "logger=wandb": "wandb use_wandb track report_to with_wandb log_wandb wandb_project wandb_project_name",
    "rearrange view": "render render_mode gui headless viewer display show visualize",
    "video=3": "capture_video save_video save_videos record_video video_option videos",
    "eval_film": "capture_video save_video save_videos record_video video_option",
    "checkpoint": "ckpt ckpt_path model model_path load load_model load_path policy_path pretrained_path resume_from "
                  "from_checkpoint load_checkpoint load_run weights pretrained eval_ckpt_path path eval_ckpt_path_dir",
    "agent": "ckpt ckpt_path model_path load_model policy_path pretrained_path eval_ckpt_path_dir",
    "trainer.num_envs": "num_processes num_environments nenvs n_env envs num_actors",
    "workers": "num_workers n_envs num_envs num_processes num_environments num_eval_envs eval.batch_size",
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
    "checkpoint_every_s": "save_freq save_every save_interval checkpoint_interval checkpoint_freq num_checkpoints "
                          "model.save",
    "eval_every": "eval_freq eval_interval eval_steps",
    "eval_episodes": "num_eval_episodes n_eval_episodes num_episodes n_episodes eval_n_episodes test_episode_count",
    "episodes": "num_eval_episodes n_eval_episodes num_episodes n_episodes test_episode_count num_traj num_trajs",
    "seed": "random_seed rng_seed set_random_seed",
    "sim.observations": "obs_mode obs observation_mode sensors",
    "skill.action_parts": "control_mode action_space action_type task.actions",
    "skill.observation_keys": "obs_keys gym.obs_keys",
    "skill.max_steps": "max_episode_steps max_episode_length time_limit",
    "nav.max_steps": "max_episode_steps max_episode_length time_limit",
    "demos": "dataset dataset_path demo_path repo_id root",
    "sim.scene_dataset": "dataset scene_dataset_path scene scenes",
    "sim.episodes": "data_path episode_path",
    "sim.robot": "robot_uids robot_uid robot robot_type robot.type",
    "remote.chunk": "chunk_size n_action_steps action_horizon",
    "to_the_end=true": "success_at_end success_once",
    "resume=true": "load_resume_state_config resume_training",
    "log_every_s": "verbose log_interval log_freq logging_freq",
    "rearrange eval": "evaluate evaluate_policy eval_only test_only",
    "out": "repo_id root dataset_path traj_dir resume",
    "policy": "network net arch policy_type policy_kwargs net_arch",
    "deterministic": "torch_deterministic",
}

# What is said of names, or of a name and its value, that no setting stands for. Goes before what a name means.
ANSWERS = {
    "The engine has PPO only, trainer=ver or trainer=ddppo; policies of other algorithms act as agent=remote.":
        " ".join(f"{name}={value}" for name in ("algo", "algorithm", "algo_name", "rl_algo")
                 for value in ("sac", "td3", "ddpg", "dqn", "trpo", "a2c", "tdmpc2", "dreamerv3", "rlpd")),
    "A policy of LeRobot or OpenPI acts behind a server: agent=remote url=ws://host:port in 'rearrange eval'.":
        " ".join(f"{name}={value}" for name in ("policy.type", "policy_type")
                 for value in ("act", "diffusion", "smolvla", "pi0", "pi05", "pi0_fast", "vqbet", "groot")),
    "That is of algorithms with a replay memory, and the engine has PPO only.":
        "learning_starts buffer_size replay_size train_freq gradient_steps exploration_fraction",
    "The reward is dense; skill.reward_scales.TERM= weighs each of its terms.": "reward_mode reward_type",
    "The robot is commanded 30 times a second; sim= has the steps of physics in each of them.":
        "control_freq sim_freq frame_skip fps",
    "Pictures are drawn without a GPU, with one look.": "enable_shadow shader shader_pack shader_dir",
    "Every episode says in words what it asks for, in the column task.": "single_task",
    "Ranks find each other by themselves, under torchrun or SLURM.": "distrib_backend ddppo_distrib_backend",
    "Nothing is sent anywhere: the folder is yours to upload.": "push_to_hub",
}


def answer(name: str, value: Any) -> str | None:
    """The sentence that is said of a name, or of a name and a value, that other programs have."""
    for given in (f"={value}".lower(), ""):
        for sentence, others in ANSWERS.items():
            if any(f"{end}{given}" in others.split() for end in _ends(name)):
                return sentence
    return None


def meant(name: str, command: str, known: Collection[str]) -> str | None:
    """What is called so in other programs, among the settings and groups that a command has."""
    last = name.lower().replace("-", "_").rpartition(".")[2]
    # wandb.enable
    ends = [*_ends(name), *(name.lower().split(".")[:1] if last in ("enable", "enabled", "mode") else ())]
    for end in ends:
        for here, others in CALLED.items():
            if end in others.split() and here != f"rearrange {command}" and (
                    here.startswith("rearrange ") or here.partition("=")[0] in known):
                return here
    return None


def _ends(name: str) -> list[str]:
    """habitat.task.actions, task.actions, actions."""
    parts = name.lower().replace("-", "_").split(".")
    return [".".join(parts[first:]) for first in range(len(parts))]
