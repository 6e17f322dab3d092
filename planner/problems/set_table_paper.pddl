; Set Table as in the paper: the bowl from the closed drawer and the apple from the closed fridge, to the table. Drawer and
; fridge are left open.
;
; $objects, $init and $at_goals are filled in for each episode: what there is, what is observed at its start, and
; (at object_k goal_k) for each of its objects.
(define (problem set_table_paper)
  (:domain home)
  (:objects $objects)
  (:init $init)
  (:goal (and $at_goals)))
