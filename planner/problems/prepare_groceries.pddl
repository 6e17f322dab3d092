; Prepare Groceries: two objects from the open fridge to the counter, one the other way.
;
; $objects, $init and $at_goals are filled in for each episode: what there is, what is observed at its start, and
; (at object_k goal_k) for each of its objects.
(define (problem prepare_groceries)
  (:domain home)
  (:objects $objects)
  (:init $init)
  (:goal (and $at_goals)))
