; Tidy House: every object of the episode to its goal.
;
; $objects, $init and $at_goals are filled in for each episode: what there is, what is observed at its start, and
; (at object_k goal_k) for each of its objects.
(define (problem tidy_house)
  (:domain home)
  (:objects $objects)
  (:init $init)
  (:goal (and $at_goals)))
