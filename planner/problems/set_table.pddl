; Set Table: the bowl from the closed drawer and the apple from the closed fridge, to the table; drawer and fridge
; are closed again.
;
; $objects, $init and $at_goals are filled in for each episode: what there is, what is observed at its start, and
; (at object_k goal_k) for each of its objects.
(define (problem set_table)
  (:domain home)
  (:objects $objects)
  (:init $init)
  (:goal (and $at_goals (closed cabinet_0) (closed fridge))))
